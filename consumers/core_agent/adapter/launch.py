"""What one trial of a CLI consists of: argument lists, environment and files.

Owns filling an adapter in for a trial, and writing the files it wants into the trial's
HOME. It starts nothing.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_eval import InvalidInput, Problem

from . import template
from .model import Adapter
from .restriction import Grants

DUMMY_KEY = "sk-dummy"
LAUNCHER_SLOT = "{argv}"


@dataclass(frozen=True, slots=True)
class Place:
    """The folders of one trial. ``private`` is outside everything the agent is told of."""

    workspace: str
    home: str
    tmpdir: str
    private: str


@dataclass(frozen=True, slots=True)
class Launch:
    """A trial ready to be started. ``env`` is what the adapter adds to the trial's environment."""

    pre: tuple[tuple[str, ...], ...]
    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    events_path: str | None


def prepare(
    adapter: Adapter, place: Place, grants: Grants, *, binary: str, package_root: str, instruction: str, model: str,
    origin: str, timeout_s: float, launcher: Sequence[str] = (),
) -> Launch:
    """Write the adapter's files and give its argument lists."""
    values: dict[str, object] = {
        "bin": binary, "pkg_root": package_root, "workspace": place.workspace, "home": place.home,
        "tmpdir": place.tmpdir, "prompt": f"{instruction.rstrip()}\n\n{adapter.execution.closing}", "model": model,
        "origin": origin, "base_url": f"{origin}/v1", "api_key": DUMMY_KEY, "tools_args": grants.arguments,
        "tools_granted": grants.real, "tools_denied": grants.denied,
        "tools_denied_map": dict.fromkeys(grants.denied, adapter.tools.deny_value), "timeout_s": max(1, int(timeout_s)),
        "events_file": os.path.join(place.private, "events-file"),
    }
    spec = adapter.execution
    for path, content in spec.files.items():
        _write(str(template.fill(path, values)), template.fill(content, values))
    events = adapter.events.path
    return Launch(
        pre=tuple(wrapped(launcher, template.fill_argv(words, values)) for words in spec.pre),
        argv=wrapped(launcher, template.fill_argv(spec.argv, values)),
        cwd=str(template.fill(spec.cwd, values)),
        env={name: str(template.fill(value, values)) for name, value in spec.env.items()},
        events_path=str(template.fill(events, values)) if events else None,
    )


def wrapped(launcher: Sequence[str], argv: Sequence[str]) -> tuple[str, ...]:
    """``argv`` behind the launcher: ``{argv}`` in it becomes the whole list."""
    if not launcher:
        return tuple(argv)
    return tuple(word for part in launcher for word in (argv if part == LAUNCHER_SLOT else (part,)))


def read_launcher(text: str) -> tuple[str, ...]:
    """The ``--launcher`` option: a JSON list with ``{argv}`` once. Raises :class:`InvalidInput`."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInput.one("--launcher", f"is no JSON: {error}", "write [\"bwrap\", ..., \"{argv}\"]") from None
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise InvalidInput.one("--launcher", "is no list of texts", "write [\"bwrap\", ..., \"{argv}\"]")
    if value.count(LAUNCHER_SLOT) != 1 or value[0] == LAUNCHER_SLOT:
        raise InvalidInput.one("--launcher", "needs {argv} exactly once, after the launcher's own words")
    found = shutil.which(value[0])
    if found is None:
        raise InvalidInput.one("--launcher", f"there is no program {value[0]!r}", "install it or give its path")
    return (found, *value[1:])


def check_home_files(names: Sequence[str], home: str) -> None:
    """Raise :class:`InvalidInput` for every ``--home-file`` that is not a regular file inside ``home``."""
    problems = []
    for name in names:
        parts = name.split("/")
        if os.path.isabs(name) or ".." in parts or not name.strip("/"):
            problems.append(Problem("--home-file", f"{name!r} is not a path inside HOME", "for example .codex/auth.json"))
        elif not os.path.isfile(os.path.join(home, name)):
            problems.append(Problem("--home-file", f"{os.path.join(home, name)} is not a file", "log in first, or leave it out"))
    if problems:
        raise InvalidInput(problems)


def copy_home_files(names: Sequence[str], source_home: str, trial_home: str) -> None:
    """Copy login files into the trial's HOME, readable by the agent alone. They are deleted with it."""
    for name in names:
        target = os.path.join(trial_home, name)
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with open(os.path.join(source_home, name), "rb") as source:
            data = source.read()
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)


def _write(path: str, content: object) -> None:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content, indent=1, sort_keys=True) + "\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
