"""The six tools of the contract, confined to one workspace.

Owns what each tool does and the bounds of its output. It emits no event and knows no
grant: the session asks for both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAX_OUTPUT_CHARS = 64_000
MAX_FILE_BYTES = 4 << 20
EXECUTE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a call came to. ``exit_code`` is set when a program ran to its end."""

    ok: bool
    output: str
    exit_code: int | None = None


class ToolError(Exception):
    """A call that cannot be done; the text says why and becomes the result's output."""


class Tools:
    """Calls on one workspace."""

    def __init__(self, workspace: str) -> None:
        self._root = os.path.realpath(workspace)
        self._calls: dict[str, Callable[[Mapping[str, object]], Result]] = {
            "read": self._read,
            "list": self._list,
            "search": self._search,
            "write": self._write,
            "edit": self._edit,
            "execute": self._execute,
        }

    def call(self, tool: str, arguments: Mapping[str, object]) -> Result:
        """Do one call; whatever is wrong with it is a result that is not ok."""
        try:
            if tool not in self._calls:
                raise ToolError(f"there is no tool {tool!r}")
            return self._calls[tool](arguments)
        except ToolError as error:
            return Result(False, str(error))
        except OSError as error:
            return Result(False, error.strerror or str(error))
        except UnicodeError:
            return Result(False, "the text is not UTF-8")

    def _path(self, arguments: Mapping[str, object], default: str | None = None) -> str:
        given = arguments.get("path", default)
        if not isinstance(given, str) or "\0" in given:
            raise ToolError("'path' must be a text")
        path = os.path.realpath(os.path.join(self._root, given))
        if path != self._root and not path.startswith(self._root + os.sep):
            raise ToolError(f"{given} is outside the workspace")
        return path

    def _text(self, arguments: Mapping[str, object], name: str) -> str:
        value = arguments.get(name)
        if not isinstance(value, str):
            raise ToolError(f"{name!r} must be a text")
        return value

    def _load(self, path: str) -> str:
        if not os.path.isfile(path):
            raise ToolError("is not a file")
        if os.path.getsize(path) > MAX_FILE_BYTES:
            raise ToolError("the file is too large")
        # newline="": line ends are content, and an edit must leave them alone.
        with open(path, encoding="utf-8", newline="") as stream:
            return stream.read()

    def _read(self, arguments: Mapping[str, object]) -> Result:
        return Result(True, self._load(self._path(arguments))[:MAX_OUTPUT_CHARS])

    def _list(self, arguments: Mapping[str, object]) -> Result:
        folder = self._path(arguments, ".")
        names = sorted(os.listdir(folder))
        return Result(True, "".join(f"{name}/\n" if os.path.isdir(os.path.join(folder, name)) else f"{name}\n" for name in names))

    def _search(self, arguments: Mapping[str, object]) -> Result:
        wanted, start = self._text(arguments, "text"), self._path(arguments, ".")
        lines: list[str] = []
        size = 0
        for folder, folders, names in os.walk(start):
            folders.sort()
            for name in sorted(names):
                path = os.path.join(folder, name)
                try:
                    text = self._load(path)
                except (ToolError, OSError, UnicodeError):
                    continue
                shown = os.path.relpath(path, self._root)
                for number, line in enumerate(text.splitlines(), 1):
                    if wanted in line:
                        lines.append(f"{shown}:{number}:{line}\n")
                        size += len(lines[-1])
                if size > MAX_OUTPUT_CHARS:
                    return Result(True, "".join(lines)[:MAX_OUTPUT_CHARS] + "\n(more was found)\n")
        return Result(True, "".join(lines))

    def _write(self, arguments: Mapping[str, object]) -> Result:
        path, content = self._path(arguments), self._text(arguments, "content")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._store(path, content)
        return Result(True, f"wrote {len(content.encode())} bytes")

    def _edit(self, arguments: Mapping[str, object]) -> Result:
        path, old, new = self._path(arguments), self._text(arguments, "old"), self._text(arguments, "new")
        text = self._load(path)
        count = text.count(old) if old else 0
        if count != 1:
            raise ToolError(f"the old text occurs {count} times, it must occur once")
        self._store(path, text.replace(old, new))
        return Result(True, "replaced one occurrence")

    def _store(self, path: str, content: str) -> None:
        with open(path, "w", encoding="utf-8", newline="") as stream:
            stream.write(content)

    def _execute(self, arguments: Mapping[str, object]) -> Result:
        # Imported when it is needed: most tasks run no program, and starting fast matters more.
        import subprocess

        argv = arguments.get("argv")
        if not isinstance(argv, list) or not argv or not all(isinstance(item, str) and "\0" not in item for item in argv):
            raise ToolError("'argv' must be a list of texts")
        try:
            done = subprocess.run(
                argv, cwd=self._root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=EXECUTE_TIMEOUT_S
            )
        except subprocess.TimeoutExpired:
            raise ToolError(f"the program was stopped after {EXECUTE_TIMEOUT_S:g} s") from None
        output = done.stdout.decode("utf-8", "backslashreplace")[:MAX_OUTPUT_CHARS]
        return Result(done.returncode == 0, output, done.returncode)
