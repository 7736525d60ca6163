"""`r-artifacts`: a check case built around the executable checker `verify.py` beside this file.

Thin on purpose: it writes down the case that a domain owner would have written by hand, with every file that decides the
result as an identity file, and leaves the rest to the library's owner check. It does not look at the science.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import stat
import sys
from collections.abc import Generator

from agent_eval import (
    Command,
    InvalidInput,
    Judgment,
    Outcome,
    PlannedCase,
    PlannedRun,
    Problem,
    TrialContext,
    TrialEvidence,
    TrialResult,
    case,
    limits_from,
    owner_check,
    plan,
)

from .documents import MAX_DOCUMENT_BYTES, DocumentError, parse_object
from .integrity import MANIFEST, UnsafeFile, path_fault, read_bounded

CASE_ID = "deseq2-artifacts"
SCOPE = "integrity, pairing and independent arithmetic of the files that a finished DESeq2 analysis left behind"
NOT_SCORED = ("no refit of the model", "no RDS is read", "no provenance of an earlier run", "no autonomous research")
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "consumers.r_artifacts."
_PLACEHOLDERS = (case.REPORT, case.CASE_DIR, case.SCRATCH)


def checker_files() -> list[str]:
    """Absolute paths of `verify.py` and of every module of this folder that it imports, directly or not."""
    found: dict[str, None] = {}
    waiting = ["verify", "__init__"]
    while waiting:
        path = os.path.join(_FOLDER, f"{waiting.pop()}.py")
        if path in found:
            continue
        found[path] = None
        with open(path, "rb") as stream:
            tree = ast.parse(stream.read(), filename=path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                if node.level == 1:
                    waiting.append(node.module)
                elif node.module.startswith(_PACKAGE):
                    waiting.append(node.module.removeprefix(_PACKAGE))
    return sorted(found)


def artifact_files(folder: str) -> list[str]:
    """The manifest and every file it declares, as far as they are plain files inside the folder: the checker judges the rest."""
    paths = [MANIFEST]
    try:
        manifest, _ = parse_object(read_bounded(folder, MANIFEST, MAX_DOCUMENT_BYTES))
    except (UnsafeFile, DocumentError):
        manifest = {}
    files = manifest.get("files")
    for entry in files if isinstance(files, list) else ():
        path = entry.get("path") if isinstance(entry, dict) else None
        if isinstance(path, str) and path and path_fault(path) is None:
            paths.append(path)
    return [path for path in (os.path.join(folder, name) for name in dict.fromkeys(paths)) if _is_plain(path)]


def _is_plain(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


class RArtifacts:
    """The command ``r-artifacts``."""

    name = "r-artifacts"
    summary = "check a finished DESeq2 analysis by integrity, pairing and independent arithmetic"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the folder."""
        parser.add_argument("artifacts", metavar="DIR", help="the folder with complete.json")

    def plan(self, args: argparse.Namespace) -> PlannedRun:
        """One case around `verify.py`; every problem of the folder's name and of the limits together."""
        limits, trials, problems = limits_from(args, plan.DEFAULT_CHECKER_TIMEOUT_S, plan.MAX_CHECKER_TIMEOUT_S)
        folder = os.path.abspath(args.artifacts)
        if not os.path.isdir(folder):
            problems.append(Problem(args.artifacts, "no such folder", "give the folder that holds complete.json"))
        if any(mark in folder for mark in _PLACEHOLDERS):
            problems.append(Problem(args.artifacts, f"a placeholder ({', '.join(_PLACEHOLDERS)}) in the path", "rename the folder"))
        if problems:
            raise InvalidInput(problems)
        data = json.dumps({
            "id": CASE_ID, "scope": SCOPE, "not_scored": NOT_SCORED,
            # -I: no variable and no user's package stands between the checker and its own modules
            "command": [sys.executable, "-I", "-B", os.path.join(_FOLDER, "verify.py"), folder, "--report", case.REPORT],
            "identity_files": checker_files() + artifact_files(folder),
        }, sort_keys=True, indent=1).encode("ascii") + b"\n"
        parsed, problems = case.parse_case(data, self.name, _FOLDER, tuple(args.allow_credential_shape))
        if parsed is None:
            raise InvalidInput(problems)
        return owner_check.plan_checks(
            [(PlannedCase(parsed.id, data, parsed.scope, parsed.not_scored), parsed)], trials, limits, args.timeout is not None)

    def run_trial(self, trial: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """The library's owner check."""
        return trial.planned.private.run_trial(trial)

    def judge(self, evidence: TrialEvidence, criteria: str) -> Judgment:
        """The library's verdict on a checker; ``criteria`` makes no difference, `verify.py` is what decides."""
        return owner_check.judge(evidence)


CONSUMER = RArtifacts()
