"""The documents that `audit contamination` searches: every regular file below a path, bounded, no link followed."""

from __future__ import annotations

import os
from collections.abc import Iterator

from agent_eval.measure.contamination import Source
from agent_eval.records import strict_json
from agent_eval.records.problems import InvalidInput

MAX_FILE_BYTES = 64 << 20
MAX_TOTAL_BYTES = 4 << 30


def read_sources(paths: list[str]) -> Iterator[Source]:
    """One source per file, or per line with a `text` in a .jsonl file.

    Bytes that are not UTF-8 are replaced: what is searched may be anything. Raises InvalidInput for a path that is not
    there or holds no file, a file over 64 MiB, or more than 4 GiB in all: what was not searched must not count as clean.
    """
    total = 0
    for path in paths:
        empty = True
        for file in _files(path):
            empty = False
            data = _read(file)
            total += len(data)
            if total > MAX_TOTAL_BYTES:
                raise InvalidInput.one("--against", f"more than {MAX_TOTAL_BYTES >> 30} GiB in all", "search in parts")
            yield from _documents(file, data)
        if empty:
            raise InvalidInput.one("--against", f"{path} holds no regular file", "name what the model may have seen")


def _files(path: str) -> Iterator[str]:
    if os.path.isfile(path):
        yield path
    elif os.path.isdir(path):
        for folder, folders, names in os.walk(path, onerror=_unreadable):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(folder, name)
                if os.path.isfile(file) and not os.path.islink(file):
                    yield file
    else:
        raise InvalidInput.one("--against", f"{path} is neither a file nor a folder")


def _unreadable(error: OSError) -> None:
    raise InvalidInput.one("--against", f"{error.filename} cannot be read ({error.strerror})") from None


def _read(path: str) -> bytes:
    try:
        if os.path.getsize(path) > MAX_FILE_BYTES:
            raise InvalidInput.one("--against", f"{path} is larger than {MAX_FILE_BYTES >> 20} MiB", "split it")
        with open(path, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise InvalidInput.one("--against", f"{path} cannot be read ({error.strerror})") from None


def _documents(path: str, data: bytes) -> list[Source]:
    if path.endswith(".jsonl"):
        lines = [line for line in data.split(b"\n") if line.strip()]
        texts = [text for line in lines if (text := _text_of(line)) is not None]
        if lines and len(texts) == len(lines):
            return [Source(f"{path}, line {index}", text) for index, text in enumerate(texts, 1)]
    return [Source(path, data.decode("utf-8", "replace"))]


def _text_of(line: bytes) -> str | None:
    try:
        value = strict_json.parse(line)
    except strict_json.JsonError:
        return None
    text = value.get("text") if isinstance(value, dict) else None
    return text if isinstance(text, str) else None
