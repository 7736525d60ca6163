"""A domain owner's check case: one JSON file, validated whole before anything runs.

Owns the fields of the case format, the placeholders and every refusal. It does not
run the command and does not interpret what the checker reports.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from agent_eval.records import credentials, strict_json
from agent_eval.records.plan import MAX_CHECKER_TIMEOUT_S, MIN_TIMEOUT_S
from agent_eval.records.problems import Problem

REPORT = "{report}"
CASE_DIR = "{case_dir}"
SCRATCH = "{scratch}"
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_CASE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CheckCase:
    """A case whose placeholders are still in it, but for ``{case_dir}``.

    ``timeout_s`` is ``None`` when the case leaves it to the command line. ``cleanup`` runs after the trial, always.
    """

    id: str
    scope: str
    command: tuple[str, ...]
    identity_files: tuple[str, ...] = ()
    not_scored: tuple[str, ...] = ()
    cwd: str | None = None
    env: tuple[str, ...] = ()
    timeout_s: float | None = None
    leaks_fail: bool = False
    required_checks: tuple[str, ...] = ()
    cleanup: tuple[str, ...] = ()
    critical: bool = False


def expand(text: str, *, scratch: str, report: str | None = None) -> str:
    """``text`` with ``{scratch}`` and, when it is the whole argument, ``{report}`` filled in."""
    if text == REPORT and report is not None:
        return report
    return text.replace(SCRATCH, scratch)


def parse_case(data: bytes, where: str, case_dir: str, allowed_shapes: tuple[str, ...] = ()) -> tuple[CheckCase | None, list[Problem]]:
    """Read a case; every problem at once, each with its JSON path.

    ``where`` names the file in problems; ``case_dir`` fills ``{case_dir}``. ``allowed_shapes`` are places
    (``/command/3``, or ``where:/command/3``) at which something shaped like a credential is accepted.
    The case is ``None`` when there is any problem.
    """
    try:
        value = strict_json.parse_object(data, max_bytes=MAX_CASE_BYTES)
    except strict_json.JsonError as error:
        return None, [Problem(where, str(error), "a case is one JSON object")]
    fields = _Fields(value, where, case_dir)
    case = CheckCase(
        id=fields.identifier(),
        scope=fields.text("scope", required=True),
        command=fields.argv("command", required=True),
        identity_files=fields.strings("identity_files", expand_case_dir=True),
        not_scored=fields.strings("not_scored"),
        cwd=fields.cwd(),
        env=fields.env_names(),
        timeout_s=fields.timeout(),
        leaks_fail=fields.choice("leaks", ("report", "fail"), "report") == "fail",
        required_checks=fields.strings("required_checks", unique=True),
        cleanup=fields.argv("cleanup"),
        critical=fields.flag("critical"),
    )
    fields.check_report_argument(case)
    fields.check_identity_paths(case)
    fields.refuse_unknown()
    fields.refuse_credentials(allowed_shapes)
    return (None, fields.problems) if fields.problems else (case, [])


class _Fields:
    """Takes the fields out of a raw case one by one and notes what is wrong with each."""

    def __init__(self, value: dict[str, object], where: str, case_dir: str) -> None:
        self.problems: list[Problem] = []
        self._value = value
        self._where = where
        self._case_dir = case_dir
        self._known: set[str] = set()

    def note(self, path: str, what: str, fix: str = "") -> None:
        self.problems.append(Problem(f"{self._where}:{path}", what, fix))

    def _take(self, name: str, *, required: bool = False) -> object:
        self._known.add(name)
        if required and name not in self._value:
            self.note(f"/{name}", "missing", f"add \"{name}\"")
        return self._value.get(name)

    def identifier(self) -> str:
        value = self._take("id", required=True)
        if "id" in self._value and not (isinstance(value, str) and SAFE_ID.fullmatch(value)):
            self.note("/id", "not a safe id", "use 1 to 100 of letters, digits and . _ @ + -, starting with a letter or digit")
        return value if isinstance(value, str) else ""

    def text(self, name: str, *, required: bool = False) -> str:
        value = self._take(name, required=required)
        if name in self._value and (not isinstance(value, str) or not value.strip()):
            self.note(f"/{name}", "not a text", "say it in words")
        return value if isinstance(value, str) else ""

    def flag(self, name: str) -> bool:
        value = self._take(name)
        if name in self._value and not isinstance(value, bool):
            self.note(f"/{name}", "not true or false")
        return value is True

    def choice(self, name: str, allowed: tuple[str, ...], default: str) -> str:
        value = self._take(name)
        if name not in self._value:
            return default
        if value not in allowed:
            self.note(f"/{name}", f"not one of {', '.join(allowed)}")
            return default
        return value

    def strings(self, name: str, *, expand_case_dir: bool = False, unique: bool = False) -> tuple[str, ...]:
        value = self._take(name)
        if name not in self._value:
            return ()
        if not isinstance(value, list):
            self.note(f"/{name}", "not an array of strings")
            return ()
        for index, item in enumerate(value):
            if not isinstance(item, str) or not item or "\0" in item:
                self.note(f"/{name}/{index}", "not a non-empty string")
            elif unique and item in value[:index]:
                self.note(f"/{name}/{index}", f"{item!r} occurs twice")
        good = [item for item in value if isinstance(item, str)]
        return tuple(item.replace(CASE_DIR, self._case_dir) if expand_case_dir else item for item in good)

    def argv(self, name: str, *, required: bool = False) -> tuple[str, ...]:
        value = self._take(name, required=required)
        if name not in self._value:
            return ()
        if not isinstance(value, list) or not value:
            self.note(f"/{name}", "not a non-empty array of arguments", "give the program and each argument as its own string; no shell reads it")
            return ()
        for index, item in enumerate(value):
            if not isinstance(item, str):
                self.note(f"/{name}/{index}", "not a string")
            elif "\0" in item or (index == 0 and not item):
                self.note(f"/{name}/{index}", "empty or holds a NUL byte")
        return tuple(item.replace(CASE_DIR, self._case_dir) for item in value if isinstance(item, str))

    def cwd(self) -> str | None:
        value = self._take("cwd")
        if "cwd" not in self._value:
            return None
        if not isinstance(value, str) or not value:
            self.note("/cwd", "not a path")
            return None
        path = value.replace(CASE_DIR, self._case_dir)
        if path.startswith(SCRATCH):
            return path
        if not os.path.isabs(path) or not os.path.isdir(path):
            self.note("/cwd", f"{path} is not the absolute path of a folder", f"start it with {CASE_DIR} or {SCRATCH}")
        return path

    def env_names(self) -> tuple[str, ...]:
        names = self.strings("env", unique=True)
        for index, name in enumerate(names):
            if not _ENV_NAME.fullmatch(name):
                self.note(f"/env/{index}", "not the name of an environment variable", "give names only; values are passed on and never written")
        return names

    def timeout(self) -> float | None:
        value = self._take("timeout_s")
        if "timeout_s" not in self._value:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not MIN_TIMEOUT_S <= value <= MAX_CHECKER_TIMEOUT_S:
            self.note("/timeout_s", "out of range", f"give {MIN_TIMEOUT_S:g} to {MAX_CHECKER_TIMEOUT_S:g} seconds")
            return None
        return float(value)

    def check_report_argument(self, case: CheckCase) -> None:
        whole = case.command.count(REPORT)
        inside = [index for index, item in enumerate(case.command) if REPORT in item and item != REPORT]
        for index in inside:
            self.note(f"/command/{index}", f"{REPORT} inside another argument", "make it one complete argument")
        if case.command and whole != 1 and not inside:
            self.note("/command", f"{REPORT} occurs {whole} times", f"give {REPORT} as one complete argument, exactly once")
        if case.command and case.command[0] == REPORT:
            self.note("/command/0", f"{REPORT} cannot be the program")
        if any(REPORT in item for item in case.cleanup):
            self.note("/cleanup", f"{REPORT} has no meaning there")

    def check_identity_paths(self, case: CheckCase) -> None:
        for index, path in enumerate(case.identity_files):
            place = f"/identity_files/{index}"
            if not os.path.isabs(path):
                self.note(place, f"{path} is not an absolute path", f"start it with / or {CASE_DIR}")
            elif not os.path.exists(path):
                self.note(place, f"{path} does not exist")
            elif not os.path.isfile(path):
                self.note(place, f"{path} is not a file")

    def refuse_unknown(self) -> None:
        for name in self._value:
            if name not in self._known:
                self.note(f"/{name}", "unknown field", f"fields are {', '.join(sorted(self._known))}")

    def refuse_credentials(self, allowed: tuple[str, ...]) -> None:
        for path, text in _strings_of(self._value, ""):
            if path in allowed or f"{self._where}:{path}" in allowed:
                continue
            for sighting in credentials.find(text):
                self.note(path, f"shaped like a credential ({sighting.pattern})", f"pass it by an environment name in \"env\", or add --allow-credential-shape {path}")


def _strings_of(value: object, path: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(path, value)]
    if isinstance(value, list):
        return [pair for index, item in enumerate(value) for pair in _strings_of(item, f"{path}/{index}")]
    if isinstance(value, dict):
        return [pair for name, item in value.items() for pair in [(f"{path}/{name}", name), *_strings_of(item, f"{path}/{name}")]]
    return []
