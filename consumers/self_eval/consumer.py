"""Score the receipts that agent runs leave about themselves, against a suite.

Owns the command's options and the walk from receipts to planned cases: a receipt is a case, and
its one trial runs no process. What a suite is, and what a receipt comes to, is in ``suite`` and ``scoring``.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Generator

from agent_eval import (
    Command,
    InvalidInput,
    Judgment,
    Limits,
    Outcome,
    PlannedCase,
    PlannedRun,
    Problem,
    TrialContext,
    TrialEvidence,
    TrialResult,
    digests,
    receipt,
    receipts,
    strict_json,
)

from . import listing, proof, trees
from .scoring import not_assessable, scorer_for
from .suite import DEFAULT_SUITE, Suite, load_suite

OBSERVED = "observed.json"
_UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
_MAX_ID_CHARS = 60


class SelfEval:
    """The command ``self-eval``."""

    name = "self-eval"
    summary = "score the receipts that agent runs leave about themselves"
    uses_scratch = False

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the options; without any of them the suite is validated."""
        group = parser.add_argument_group("self-evaluation")
        group.add_argument("--suite", metavar="FILE", default=DEFAULT_SUITE, help="the suite (default: evals/agent-self-improvement/suite.json)")
        group.add_argument("--test", action="store_true", help="the suite's own proof: its examples and declared negatives")
        group.add_argument("--kinds", action="store_true", help="list the kinds of assertion with their fields")
        group.add_argument("--receipt", nargs="+", action="extend", default=[], metavar="FILE", help="receipts to score, or folders of them")
        group.add_argument("--git", metavar="REPO", help="compare filesTouched with the working tree of this repository")
        group.add_argument("--base", metavar="REV", help="the revision that the run started from (with --git)")
        group.add_argument("--before", metavar="TREE", help="the folder as it was before the run (with --after)")
        group.add_argument("--after", metavar="TREE", help="the folder as it was after the run (with --before)")
        group.add_argument("--artifact-root", metavar="DIR", help="where the artifacts of receipts are (default: the tree that is compared)")

    def run(self, args: argparse.Namespace) -> int | None:
        """The modes that score nothing; ``None`` when there are receipts."""
        problems = _combinations(args)
        if problems:
            raise InvalidInput(problems)
        if args.kinds:
            print(listing.kinds_json() if args.json else listing.kinds_text())
            return 0
        if args.receipt:
            return None
        suite = load_suite(args.suite)
        if args.test:
            results = proof.prove(suite, os.path.dirname(os.path.abspath(args.suite)))
            print(proof.results_json(results) if args.json else proof.results_text(results))
            return 0 if all(result.held for result in results) else 1
        print(listing.suite_json(suite, args.suite) if args.json else listing.suite_text(suite, args.suite))
        return 0

    def plan(self, args: argparse.Namespace) -> PlannedRun:
        """Read the suite and every receipt; one invalid thing and nothing is scored."""
        suite = load_suite(args.suite)
        problems: list[Problem] = []
        if args.trials not in (None, 1):
            problems.append(Problem("--trials", f"{args.trials} trials of a receipt give the same score", "leave it out"))
        read, notes = _read_all(_files(args.receipt, problems), problems)
        if problems:
            raise InvalidInput(problems)
        observed = _observe(args, suite, read)
        kept = {case_id: len(strict_json.pretty(sections)) for case_id, sections in observed.items()}
        cases = tuple(
            PlannedCase(case_id, item.data, f"receipt {item.run_id}", suite.cannot_exercise, files_bytes=kept.get(case_id, 0))
            for case_id, item in read.items()
        )
        subject: dict[str, object] = {
            "suite": {"id": suite.id, "revision": suite.revision, "sha256": suite.sha256, "text": suite.text},
            "observed": sorted({name for sections in observed.values() for name in sections}),
        }
        notes += [f"warning: {text}" for text in suite.warnings]
        return PlannedRun(cases, 1, Limits(), subject=subject, notes=tuple(notes), private=observed)

    def run_trial(self, trial: TrialContext) -> Generator[Command, Outcome, TrialResult]:
        """Keep what the harness observed; no process is run."""
        observed = trial.planned.private.get(trial.case.id)
        if observed:
            trial.folder.write(OBSERVED, strict_json.pretty(observed))
        return TrialResult(None)
        yield  # a generator like that of any consumer

    def judge(self, evidence: TrialEvidence, criteria: str) -> Judgment:
        """Score the retained receipt against the retained suite, or with ``current`` against today's."""
        kept = evidence.plan["subject"]["suite"]
        try:
            suite_text = kept["text"] if criteria == "retained" else load_suite(DEFAULT_SUITE).text
            scorer = scorer_for(suite_text)
            if scorer.suite.id != kept["id"]:
                return not_assessable(f"the receipt was scored by the suite {kept['id']}, and today's is {scorer.suite.id}")
            item = receipt.read_receipt(evidence.case_bytes, f"cases/{evidence.case_id}.json")
        except InvalidInput as error:
            # Valid when it was kept: another version of this code reads it otherwise.
            return not_assessable("; ".join(str(problem) for problem in error.problems))
        data = evidence.read(OBSERVED)
        observed = strict_json.parse_object(data) if data is not None else {}
        return scorer.judge(item.sections, item.hidden, observed)


def _combinations(args: argparse.Namespace) -> list[Problem]:
    """Options that need each other or exclude each other."""
    problems = []
    for first, second in (("git", "base"), ("before", "after")):
        if (getattr(args, first) is None) != (getattr(args, second) is None):
            given, absent = (first, second) if getattr(args, first) is not None else (second, first)
            problems.append(Problem(f"--{given}", f"needs --{absent}"))
    observing = [name for name in ("git", "base", "before", "after", "artifact_root") if getattr(args, name) is not None]
    if args.git is not None and (args.before is not None or args.after is not None):
        problems.append(Problem("--git", "stands beside --before and --after", "compare one way"))
    if observing and not args.receipt:
        problems.append(Problem(f"--{observing[0].replace('_', '-')}", "needs a receipt", "add --receipt FILE"))
    modes = [name for name, given in (("--test", args.test), ("--kinds", args.kinds), ("--receipt", args.receipt)) if given]
    if len(modes) > 1:
        problems.append(Problem(modes[1], f"stands beside {modes[0]}", "one at a time"))
    return problems


def _files(arguments: list[str], problems: list[Problem]) -> list[str]:
    """The receipt files; a folder stands for the ``*.json`` in it."""
    files: list[str] = []
    for argument in arguments:
        if not os.path.isdir(argument):
            files.append(argument)
            continue
        names = sorted(name for name in os.listdir(argument) if name.endswith(".json"))
        if not names:
            problems.append(Problem(argument, "the folder has no *.json"))
        files += [os.path.join(argument, name) for name in names]
    return files


def _read_all(files: list[str], problems: list[Problem]) -> tuple[dict[str, receipt.Receipt], list[str]]:
    """Every receipt under its case id, with notes; adds to ``problems`` whatever is invalid."""
    by_run: dict[str, tuple[str, receipt.Receipt]] = {}
    notes: list[str] = []
    for path in files:
        try:
            item = receipt.read_receipt(_bytes_of(path), path)
        except InvalidInput as error:
            problems += error.problems
            continue
        other_path, other = by_run.setdefault(item.run_id, (path, item))
        if other.sha256 != item.sha256:
            problems.append(Problem(f"{path}#/runId", f"is also the runId of {other_path}, with other bytes", "a run leaves one receipt"))
        elif other is not item:
            notes.append(f"{path}: the same receipt as {other_path}; scored once")
    cases: dict[str, receipt.Receipt] = {}
    taken: set[str] = set()
    for _, item in by_run.values():
        case_id = _case_id(item, taken)
        taken.add(case_id.lower())
        cases[case_id] = item
    return cases, notes


def _case_id(item: receipt.Receipt, taken: set[str]) -> str:
    """The run id where it is a safe name of its own, else one made of it and the receipt's digest."""
    name = _UNSAFE.sub("-", item.run_id).strip("-._+")[:_MAX_ID_CHARS]
    if name == item.run_id and name.lower() not in taken:
        return name
    return f"{name or 'run'}-{item.sha256[:12]}"


def _bytes_of(path: str) -> bytes:
    try:
        size_bytes = os.stat(path).st_size
        if not os.path.isfile(path):
            raise InvalidInput.one(path, "not a regular file", "give a receipt (JSON)")
        if size_bytes > receipt.MAX_RECEIPT_BYTES:
            fix = "record what mattered, not the transcript; the file is left as it is"
            what = f"a receipt of {size_bytes} bytes (sha256 {digests.sha256_file(os.path.realpath(path))}), at most {receipt.MAX_RECEIPT_BYTES} are scored"
            raise InvalidInput.one(path, what, fix)
        with open(path, "rb") as stream:
            return stream.read(receipt.MAX_RECEIPT_BYTES + 1)
    except OSError as error:
        raise InvalidInput.one(path, f"cannot be read ({error.strerror})") from None


def _observe(args: argparse.Namespace, suite: Suite, read: dict[str, receipt.Receipt]) -> dict[str, dict[str, object]]:
    """What the harness sees by itself, for each case: the real difference, and digests of artifacts."""
    observed: dict[str, dict[str, object]] = {case_id: {} for case_id in read}
    if args.git is not None or args.before is not None:
        if len(read) != 1:
            raise InvalidInput.one("--receipt", f"{len(read)} receipts and one difference", "compare one receipt at a time")
        if args.git is not None:
            from . import git_tree  # it needs subprocess, which every other start-up can do without

            found = git_tree.changed_since(args.git, args.base)
        else:
            found = trees.difference(trees.list_tree(args.before, "--before"), trees.list_tree(args.after, "--after"))
        observed[next(iter(read))][receipts.STATE_DIFF] = found
    root = args.artifact_root or args.git or args.after
    if root is not None:
        if not os.path.isdir(root):
            raise InvalidInput.one("--artifact-root", f"{root} is not a folder")
        for case_id, item in read.items():
            paths = [artifact["path"] for artifact in item.sections.get("artifacts") or () if "path" in artifact]
            if paths:
                observed[case_id][receipts.ARTIFACT_DIGESTS] = trees.artifact_digests(root, paths)
    return observed


CONSUMER = SelfEval()
