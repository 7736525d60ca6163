"""``recheck DIR``: today's checkers on the retained after-states, supervised; never the agent."""

from __future__ import annotations

import argparse
import sys

from agent_eval.cli import consumers
from agent_eval.cli.parsing import add_output_options
from agent_eval.cli.run_display import Display, finish, planned_of
from agent_eval.evidence.location import resolve
from agent_eval.evidence.plan_check import require_digest
from agent_eval.evidence.reader import EvidenceReader
from agent_eval.grade.regrade import count_without_record, source_record
from agent_eval.measure.summary import Tally
from agent_eval.records.plan import part_facts
from agent_eval.supervise.process import prepare_process
from agent_eval.trials.recheck import Recheck
from agent_eval.trials.recording import FinishedTrial
from agent_eval.trials.run import RunOptions
from agent_eval.trials.run import run as run_trials


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("directory", metavar="DIR", help="evidence of a run, or @last")
    parser.add_argument("--unsealed", action="store_true", help="use the finished trials of an unsealed directory")
    add_output_options(parser)


class _NotingDisplay(Display):
    """Progress that also compares each trial with the retained judgment."""

    def __init__(self, args: argparse.Namespace, planned: int, recheck: Recheck) -> None:
        super().__init__(args, planned)
        self._recheck = recheck

    def finished(self, trial: FinishedTrial) -> None:
        """A trial is recorded."""
        self._recheck.note(trial)
        super().finished(trial)


def run(args: argparse.Namespace) -> int:
    """Recheck every finished trial into a new evidence directory."""
    reader = EvidenceReader.open(resolve(args.directory), unsealed_ok=args.unsealed)
    require_digest(reader.plan, args.directory)
    name = reader.plan["consumer"]
    recheck = Recheck(consumers.load(name), reader)
    planned = recheck.plan(args)
    facts = {"kind": "recheck", "source": source_record(reader), "source_sealed": reader.sealed, **part_facts(reader.plan)}
    options = RunOptions(
        argv=tuple(sys.argv[1:]),
        output=args.output,
        consumer_folder=consumers.folder_of(name),
        wanted=recheck.has,
        plan_facts=facts,
        before_seal=recheck.write_changes,
    )
    prepare_process()
    display = _NotingDisplay(args, planned_of(planned, facts), recheck)
    result = run_trials(recheck, planned, options, display, lambda plan: _counter(plan, reader))
    display.close()
    return finish(result, args)


def _counter(plan: dict, reader: EvidenceReader) -> Tally:
    """Trials that have no record cannot be checked again: they count as the run counted them."""
    counter = Tally(plan)
    count_without_record(reader, counter)
    return counter
