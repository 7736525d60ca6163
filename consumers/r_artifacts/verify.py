#!/usr/bin/env python3
"""verify.py DIR [--report FILE]: the owner checker of finished DESeq2 artifacts (see README.md beside it).

A plain owner checker: standard library only, exit 0 when everything that applies passed, 1 when not (the report is written all
the same), 2 for a usage error. It runs no R, fits nothing and reads no RDS. Owns the command line, the order of the
checks and the report; the relations are in the modules beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

if __package__ in (None, ""):
    # Run by its path: the modules beside it are found from the folder above, and nothing in this one shadows a library.
    _here = Path(__file__).resolve().parent
    sys.path[:] = [str(_here.parents[1]), *(one for one in sys.path if Path(one or ".").resolve() != _here)]

from consumers.r_artifacts.artifacts import load
from consumers.r_artifacts.attachments import check_attachments
from consumers.r_artifacts.conclusions import check_conclusions
from consumers.r_artifacts.cooks import check_cooks
from consumers.r_artifacts.design import check_design
from consumers.r_artifacts.dispersion import check_dispersions
from consumers.r_artifacts.filtering import check_filtering
from consumers.r_artifacts.findings import Ledger, Place
from consumers.r_artifacts.glm import Fit, check_glm
from consumers.r_artifacts.integrity import check_folder
from consumers.r_artifacts.model import Model
from consumers.r_artifacts.normalization import check_normalization
from consumers.r_artifacts.significance import check_significance

FORMAT = "r-artifacts/report/1"
LIMITS = (
    "no refit: estimating equations are evaluated at the retained coefficients, nothing is estimated again",
    "no RDS: dds.rds is only checked to be a whole compressed R object, its content is not read",
    "no provenance of an earlier run: whether these counts are the study's, and who ran what when, is not established",
    "no autonomous research: the question, the design and the reading of the result are not judged",
    "counts fabricated together with a true fit to them cannot be told from measured ones",
    "shrunken fold changes are bounded (sign, size, error), not recomputed",
)


def verify(root: str) -> Ledger:
    """All checks of one folder."""
    ledger = Ledger()
    ledger.limits.extend(LIMITS)
    try:
        _all_checks(root, ledger)
    except (ArithmeticError, LookupError, MemoryError, OSError, RecursionError, TypeError, ValueError) as error:
        # A check that cannot finish on some input is a failed check, never a traceback and never a pass.
        ledger.not_evaluated(ledger.open_ids(), f"the checker stopped: {type(error).__name__}: {error}")
    return ledger


def _all_checks(root: str, ledger: Ledger) -> None:
    folder = check_folder(root, ledger)
    if folder is None:
        ledger.not_evaluated(ledger.open_ids(), "there is no manifest to go by (see manifest)")
        return
    check_attachments(folder, ledger)
    analysis = load(folder, ledger)
    if analysis is None:
        ledger.not_evaluated(ledger.open_ids(), "the artifacts cannot be read or paired (see the failed checks before this one)")
        return
    design = check_design(analysis, ledger)
    if design is None:
        ledger.not_evaluated(ledger.open_ids(), "there is no model or contrast to go by (see model-matrix and contrast)")
        return
    base = check_normalization(analysis, design, ledger)
    if base is None:
        ledger.not_evaluated(ledger.open_ids(), "there are no size factors to go by (see size-factors)")
        return
    model = Model(design, base.size_factors)
    fit = Fit()

    def coefficients() -> None:
        nonlocal fit
        fit = check_glm(analysis, design, base, model, ledger)

    for step in (
        coefficients,
        lambda: check_filtering(analysis, base, check_significance(analysis, ledger), ledger),
        lambda: check_cooks(analysis, design, base, model, fit, ledger),
        lambda: check_dispersions(analysis, design, base, model, fit, ledger),
        lambda: check_conclusions(analysis, design, base, ledger),
    ):
        _guarded(step, ledger)
    ledger.not_evaluated(ledger.open_ids(), "a value that this check needs is out of range (see the failed checks)")


def _guarded(step: Callable[[], None], ledger: Ledger) -> None:
    """One group of checks. What it began and could not finish fails; the next group goes on."""
    try:
        step()
    except (ArithmeticError, ValueError) as error:
        unfinished = ledger.last()
        unfinished.wrong(Place("", what=f"a value is out of range: {type(error).__name__}: {error}"))


def write_report(path: str, report: dict[str, object]) -> None:
    """Written beside and renamed, so that a reader never meets half a report."""
    data = json.dumps(report, sort_keys=True, indent=1, allow_nan=False) + "\n"
    temporary = f"{path}.{os.getpid()}.part"
    with open(temporary, "x", encoding="ascii") as stream:
        stream.write(data)
    os.replace(temporary, path)


def build_report(root: str, ledger: Ledger) -> dict[str, object]:
    return {"format": FORMAT, "directory": os.path.basename(os.path.abspath(root)), **ledger.to_json()}


def _print(report: dict[str, object]) -> None:
    counts = report["counts"]
    for check in report["checks"]:
        if not check["passed"]:
            print(f"FAIL {check['id']}: {check['detail']}".encode("ascii", "backslashreplace").decode("ascii"))
    for name, word in (("not_applicable", "n/a "), ("not_evaluated", "???  ")):
        for one in report[name]:
            print(f"{word} {one['id']}: {one['reason']}".encode("ascii", "backslashreplace").decode("ascii"))
    print(f"{'passed' if report['passed'] else 'FAILED'}: {counts['passed']}/{counts['checks']} checks passed, "
          f"{counts['not_applicable']} not applicable, {counts['not_evaluated']} not evaluated")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="verify.py", description="Check the artifacts of a finished DESeq2 analysis.")
    parser.add_argument("directory", metavar="DIR", help="the folder with complete.json")
    parser.add_argument("--report", metavar="FILE", help="where to write the report (JSON)")
    args = parser.parse_args(argv)
    if not os.path.isdir(args.directory):
        print(f"verify.py: error: {args.directory!r}: no such folder; give the folder with complete.json", file=sys.stderr)
        return 2
    report = build_report(args.directory, verify(args.directory))
    if args.report is not None:
        try:
            write_report(args.report, report)
        except OSError as error:
            print(f"verify.py: error: --report {args.report!r}: {error.strerror}; give a path that can be written", file=sys.stderr)
            return 2
    _print(report)
    return 0 if report["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
