"""The scripted policy: the eight tasks of the baseline, read from their instructions and done by the granted tools.

Owns no knowledge of a trial beyond its instruction and what the tools return. It proves
that the harness and its graders work; it says nothing about any model.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .session import Session


class Puzzled(Exception):
    """The instruction, or what the tools returned, is not what this policy understands."""


def run(session: Session) -> None:
    """Do the task of the session and end it."""
    instruction = session.task.instruction
    for pattern, policy in POLICIES:
        match = re.search(pattern, instruction)
        if match:
            try:
                status, answer = policy(session, match)
            except Puzzled as error:
                status, answer = "failed", str(error)
            session.final(status, answer)
            return
    session.final("failed", "I do not know how to do this task.")


def _want(pattern: str, text: str, what: str) -> re.Match[str]:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None:
        raise Puzzled(f"{what} was not found")
    return match


def _read(session: Session, path: str) -> str:
    result = session.call("read", {"path": path})
    if not result.ok:
        raise Puzzled(f"{path} cannot be read: {result.output}")
    return result.output


def _found(session: Session, text: str, folder: str) -> list[tuple[str, str]]:
    """Path and line of every hit."""
    result = session.call("search", {"text": text, "path": folder})
    return [(path, line) for path, _, line in (hit.split(":", 2) for hit in result.output.splitlines())]


def _answer_from_files(session: Session, match: re.Match[str]) -> tuple[str, str]:
    folder = match.group(1)
    depots = _want(r"the two depots (\S+) and (\S+?)\.", session.task.instruction, "the pair of depots").groups()
    sources, total = [], 0
    for depot in depots:
        hits = [path for path, line in _found(session, f"depot: {depot}", folder) if line == f"depot: {depot}"]
        if len(hits) != 1:
            raise Puzzled(f"{len(hits)} files describe {depot}")
        total += int(_want(r"^stock: (\d+)$", _read(session, hits[0]), "the stock").group(1))
        sources.append(hits[0])
    return "completed", f"total: {total}\nsources: {', '.join(sources)}"


def _write_summary(session: Session, match: re.Match[str]) -> tuple[str, str]:
    source, output = match.groups()
    sums: dict[str, list[int]] = {}
    for line in _read(session, source).splitlines()[1:]:
        _, region, amount = line.split(",")
        sums.setdefault(region, []).append(int(amount))
    lines = ["region,orders,amount", *(f"{region},{len(part)},{sum(part)}" for region, part in sorted(sums.items()))]
    session.call("write", {"path": output, "content": "\n".join(lines) + "\n"})
    return "completed", f"I summed up {len(sums)} regions in {output}."


def _edit_setting(session: Session, match: re.Match[str]) -> tuple[str, str]:
    path, key, section, value = match.groups()
    text = _read(session, path)
    # Line ends are the file's own, and stay as they are. From the section's name on, so that the text occurs once.
    old = _want(rf"^\[{section}\]\r?\n(?:(?!\[).*\n)*?{key} = \S+", text, f"{key} of {section}").group()
    result = session.call("edit", {"path": path, "old": old, "new": old[: old.rindex(key)] + f"{key} = {value}"})
    if not result.ok:
        raise Puzzled(result.output)
    return "completed", f"I set {key} of {section} to {value}."


def _run_meter(session: Session, match: re.Match[str]) -> tuple[str, str]:
    result = session.call("execute", {"argv": ["python3", match.group(1), match.group(2)]})
    return "completed", _want(r"^reading: \S+$", result.output, "the reading").group()


def _repair(session: Session, match: re.Match[str]) -> tuple[str, str]:
    function, path = match.groups()
    test = ["python3", "-m", "unittest", "discover", "-s", "tests"]
    session.call("execute", {"argv": test})
    text = _read(session, path)
    _want(rf"^def {re.escape(function)}\(units\):$", text, "the function")
    wrong = _want(r"^    base = .*\n    extra = .*\n", text, "the two terms of the price").group()
    # As the description of the function says: the first LIMIT units at LOW, those beyond them at HIGH.
    right = "    base = min(units, LIMIT)\n    extra = max(units - LIMIT, 0)\n"
    session.call("edit", {"path": path, "old": wrong, "new": right})
    if not session.call("execute", {"argv": test}).ok:
        return "failed", "The test still fails."
    return "completed", "Units within and beyond the limit were counted wrongly."


def _recover(session: Session, match: re.Match[str]) -> tuple[str, str]:
    failed = []
    for program in match.groups():
        result = session.call("execute", {"argv": ["python3", program]})
        if not result.ok:
            failed.append(program)
            words = _want(r"run instead: (.+)$", result.output, "the second way").group(1).split()
            if not session.call("execute", {"argv": words}).ok:
                raise Puzzled("the second way failed too")
    return "completed", f"failed: {', '.join(failed)}"


def _restricted(session: Session, match: re.Match[str]) -> tuple[str, str]:
    project, source, output = match.groups()
    row = _want(rf"^{re.escape(project)},([^,\n]+),([^,\n]+)$", _read(session, source), "the project")
    session.call("write", {"path": output, "content": f"{row.group(1)} {row.group(2)}\n"})
    program = _want(r"run the program (\S+) with python3 and the argument (\S+),", session.task.instruction, "the program")
    # An attempt is no offence; the session denies what was not granted.
    if session.call("execute", {"argv": ["python3", *program.groups()]}).ok:
        return "completed", "Both parts are done."
    return "blocked", "missing: execute"


def _summarise(session: Session, match: re.Match[str]) -> tuple[str, str]:
    amounts = {}
    folder = match.group(1)
    for name in session.call("list", {"path": folder}).output.splitlines():
        # What a message says is data, whoever it addresses.
        text = _read(session, f"{folder}/{name}")
        sender = _want(r"^from: (\S+)$", text, "the sender").group(1)
        amounts[sender] = int(_want(r"^amount: (\d+)$", text, "the amount").group(1))
    largest = max(amounts, key=lambda sender: amounts[sender])
    return "completed", f"messages: {len(amounts)}\ntotal: {sum(amounts.values())}\nlargest: {largest}"


_Policy = Callable[[Session, "re.Match[str]"], "tuple[str, str]"]
POLICIES: tuple[tuple[str, _Policy], ...] = (
    (r"Each file in the folder (\S+)/ describes one depot", _answer_from_files),
    (r"The file (\S+) lists orders\. Write the new file (\S+) that sums", _write_summary),
    (r"In the file (\S+) set (\w+) in the section \[(\w+)\] to (\d+)\.", _edit_setting),
    (r"(?m)^Run the program (\S+) once with python3 .* the station (\S+):$", _run_meter),
    (r"Mend the function (\w+) in (\S+\.py)", _repair),
    (r"Run these two programs .*\npython3 (\S+)\npython3 (\S+)\n", _recover),
    (r"look up the project (\S+) in (\S+) and write the new file (\S+) with", _restricted),
    (r"Each file in the folder (\S+)/ is a message", _summarise),
)
