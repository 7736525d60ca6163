"""``report DIR``: an HTML page, JUnit XML and a Markdown summary from evidence, after checking it."""

from __future__ import annotations

import argparse
import importlib
import os

from agent_eval.evidence.location import evidence_around, resolve
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.regrade import count_without_record
from agent_eval.grade.retained import judgment_of, outcome_of
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import InvalidInput, Problem, raise_if
from agent_eval.report.visible_text import escape, size


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence of a run, regrade, recheck or comparison, or @last")
    parser.add_argument(
        "-o", "--output", metavar="FILE.html",
        help="the page (default: DIR's name with .html in the current folder, unless another format is asked for)",
    )  # fmt: skip
    add_format_options(parser)
    parser.add_argument("--unsealed", action="store_true", help="use the finished trials of an unsealed directory")
    parser.add_argument("--force", action="store_true", help="replace files that exist")


def add_format_options(parser: argparse.ArgumentParser) -> None:
    """``--junit`` and ``--markdown``, which a consumer's own command takes too."""
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML, a testcase per planned trial")
    parser.add_argument("--markdown", metavar="FILE", help="write a summary for the page of a CI job")


def run(args: argparse.Namespace) -> int:
    """Write what was asked for and say where it is."""
    path = resolve(args.directory)
    reader = EvidenceReader.open(path, unsealed_ok=args.unsealed)
    page = args.output
    if page is None and not (args.junit or args.markdown):
        page = f"{os.path.basename(reader.path)}.html"
    wanted = {page: "page", args.junit: "JUnit", args.markdown: "Markdown"}
    targets = [target for target in (page, args.junit, args.markdown) if target is not None]
    check_targets(targets, reader.path, args.force)
    for target, data in documents(reader, page, args.junit, args.markdown):
        write_document(target, data, args.force)
        print(f"{wanted[target]}: {escape(os.path.abspath(target))} ({size(len(data))})")
    return ExitCode.PASSED


def documents(reader: EvidenceReader, page: str | None, junit: str | None, markdown: str | None) -> list[tuple[str, bytes]]:
    """Each wanted file with its content, all made before the first is written. Raises ``EvidenceFault``."""
    summary = None if reader.sealed else counted(reader)
    made = []
    if page is not None:
        from agent_eval.report.page import report_page

        made.append((page, report_page(reader, summary)))
    if junit is not None:
        from agent_eval.report.junit import junit_xml

        made.append((junit, junit_xml(reader, summary)))
    if markdown is not None:
        from agent_eval.report.markdown import markdown_summary

        made.append((markdown, markdown_summary(reader, summary)))
    return made


def check_before_run(junit: str | None, markdown: str | None) -> None:
    """Refuse files that a run could not write at its end, before it starts. Raises ``InvalidInput``.

    A file of an earlier run is replaced, as CI systems expect; a folder or a link is not.
    """
    # Loaded before anything of a subject runs: it may rewrite the sources of a clone that it can write to.
    importlib.import_module("agent_eval.report.junit")
    importlib.import_module("agent_eval.report.markdown")
    problems = []
    for option, target in (("--junit", junit), ("--markdown", markdown)):
        if target is None:
            continue
        folder = os.path.dirname(os.path.abspath(target))
        if not os.path.isdir(folder) or not os.access(folder, os.W_OK):
            problems.append(Problem(option, f"{folder} is not a folder that can be written to", "name a file in one"))
        elif evidence_around(target) is not None:
            problems.append(Problem(option, f"{target} lies inside the evidence directory", "name a file elsewhere: evidence is never added to"))
        elif os.path.lexists(target) and (os.path.islink(target) or not os.path.isfile(target)):
            problems.append(Problem(option, f"{target} is not a plain file", "name another file"))
    raise_if(problems)


def write_after_run(path: str, junit: str | None, markdown: str | None) -> list[str]:
    """Write the files that were asked for with a run; a line for each, to be printed.

    Raises ``InvalidInput`` or ``EvidenceFault``: the run is over then and its exit code stands, so the caller says so
    and goes on.
    """
    if junit is None and markdown is None:
        return []
    reader = EvidenceReader.open(path, unsealed_ok=True)
    names = {junit: "JUnit", markdown: "Markdown"}
    lines = []
    for target, data in documents(reader, None, junit, markdown):
        write_document(target, data, force=True)
        lines.append(f"{names[target]}: {escape(os.path.abspath(target))} ({size(len(data))})")
    return lines


def counted(reader: EvidenceReader) -> dict[str, object]:
    """The summary of an unsealed directory, from its finished trials.

    A trial that was started and never finished is interrupted, the rest is unrun. Raises ``EvidenceFault``.
    """
    from agent_eval.measure.summary import Tally

    tally = Tally(reader.plan)
    for trial in reader.trials():
        tally.add(trial.case_id, trial.number, judgment_of(trial), outcome_of(trial))
    count_without_record(reader, tally)
    return tally.summary(facts={"source_sealed": False})


def check_targets(targets: list[str], evidence: str, force: bool) -> None:
    """Refuse files that exist, the same file twice, and any file inside evidence. Raises ``InvalidInput``."""
    inside = os.path.realpath(evidence) + os.sep
    for target in targets:
        if os.path.realpath(target).startswith(inside) or evidence_around(target) is not None:
            raise InvalidInput.one(target, "lies inside the evidence directory", "name a file elsewhere: evidence is never added to")
        if os.path.lexists(target) and not (force and os.path.isfile(target)):
            raise InvalidInput.one(target, "exists already", "name another file or add --force" if os.path.isfile(target) else "name another file")
    if len({os.path.realpath(target) for target in targets}) < len(targets):
        raise InvalidInput.one(targets[0], "is named for two formats", "name a file for each")


def write_document(target: str, data: bytes, force: bool) -> None:
    """Write one file whole, or none of it. Raises ``InvalidInput`` when it cannot be written."""
    try:
        with open(target, "wb" if force else "xb") as stream:
            try:
                stream.write(data)
                stream.flush()
            except OSError:
                os.unlink(target)
                raise
    except OSError as error:
        raise InvalidInput.one(target, f"cannot be written ({error.strerror})", "name a file in a folder you may write") from None
