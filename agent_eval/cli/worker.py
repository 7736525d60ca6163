"""``worker``: one trial for a coordinator on another machine; request on stdin, answer on stdout.

An exec'd process of its own: it is the subreaper of the trial and adopts no stranger's children. What
it sends back is plain data; it writes no evidence.
"""

from __future__ import annotations

import argparse
import base64
import os
import signal
import sys
from collections.abc import Iterator

from agent_eval.cli import consumers
from agent_eval.cli.parsing import CommandParser
from agent_eval.cli.run_command import parse
from agent_eval.evidence import layout
from agent_eval.evidence.files import Files
from agent_eval.evidence.plan_file import make_plan
from agent_eval.evidence.writer import TrialFolder
from agent_eval.grade.evaluator import evaluator_record
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.plan import PlannedRun
from agent_eval.records.problems import InvalidInput
from agent_eval.supervise.process import prepare_process
from agent_eval.supervise.scratch import Scratch
from agent_eval.supervise.scratch_pool import ScratchPool
from agent_eval.supervise.slot import Slot
from agent_eval.trials.consumer import Consumer
from agent_eval.trials.execution import TrialRun
from agent_eval.trials.identity import IdentityTracker
from agent_eval.trials.interrupt import Interrupt
from agent_eval.trials.scheduler import Scheduler
from agent_eval.trials.tampering import brought_about_by_subject, read_regular


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--lifeline", type=int, metavar="FD", help="a pipe whose end says that nobody waits for the answer any more")


def run(args: argparse.Namespace) -> int:
    """Read a request, run the trial, print the answer as one JSON object."""
    request = strict_json.parse_object(sys.stdin.buffer.read())
    try:
        answer = _answer(request, args.lifeline)
    except InvalidInput as error:
        answer = {"refusal": str(error).replace("\n", "; ")}
    sys.stdout.buffer.write(strict_json.canonical(answer))
    sys.stdout.buffer.flush()
    return ExitCode.PASSED


def _answer(request: dict, lifeline: int | None) -> dict[str, object]:
    name, *rest = request["argv"]
    consumer = consumers.load(name)
    args = parse(consumer, CommandParser(prog=f"run.py {name}", allow_abbrev=False), rest)
    if request["task_seed"] is not None and hasattr(args, "seed"):
        args.seed = str(request["task_seed"])
    planned = consumer.plan(args)
    plan = make_plan(name, planned, tuple(request["argv"]), evaluator_record(consumers.folder_of(name)))
    if plan["plan_sha256"] != request["plan_sha256"]:
        return {"refusal": "this worker's binary, fixtures or code are not the coordinator's (plan_sha256 differs)"}
    return _run_trial(consumer, planned, request, lifeline)


def _run_trial(consumer: Consumer, planned: PlannedRun, request: dict, lifeline: int | None) -> dict[str, object]:
    prepare_process()
    case = next(case for case in planned.cases if case.id == request["case_id"])
    with Scratch() as place, ScratchPool() as scratches, Interrupt() as interrupt, Slot(request["mark"]) as slot:
        evidence = place.subfolder("evidence")
        folder = os.path.join(evidence, layout.trial_folder(case.id, request["number"]))
        os.makedirs(folder, 0o700)
        tracker = IdentityTracker()
        trial = TrialRun(
            consumer, planned, case, request["number"], tracker,
            lambda: TrialFolder(folder, case.id, request["number"], Files()), evidence, scratches,
        )
        if lifeline is not None:
            trial.services.add(lifeline, lambda: _end_for_nobody(trial, lifeline))
        Scheduler([slot], interrupt).run(iter([_OneTask(trial, evidence)]), lambda: False)
        files = _captured(trial)
        if changed := tracker.changed_unseen():
            trial.execution.tampered = f"an identity file changed without a trace: {changed[0]}"
        return {"execution": trial.execution.to_json(), "files": files}


def _captured(trial: TrialRun) -> dict[str, str]:
    """The captured files in base64, as they were when they were captured; others are left out, and the trial says so."""
    files: dict[str, str] = {}
    folder = trial.folder
    if folder is None:
        return files
    for name, sha256 in folder.files.items():
        data = read_regular(os.path.join(folder.path, name))
        if data is not None and sha256_bytes(data) == sha256:
            files[name] = base64.b64encode(data).decode("ascii")
        else:
            trial.execution.tampered = f"{name} was changed after it was captured"
    return files


def _end_for_nobody(trial: TrialRun, lifeline: int) -> None:
    """The process that asked is gone: end as if it had told us to."""
    trial.services.remove(lifeline)
    os.kill(os.getpid(), signal.SIGTERM)


class _OneTask:
    """A trial whose result is sent away instead of recorded."""

    def __init__(self, trial: TrialRun, evidence: str) -> None:
        self._trial = trial
        self._evidence = evidence
        self.services = trial.services
        self.prepare = trial.prepare
        self.start = trial.start
        self.resume = trial.resume

    def complete(self) -> Iterator[None]:
        """Say who is at fault when evidence could not be written; the scratch is not needed any more."""
        trial = self._trial
        trial.measure()
        trial.execution.tampered = brought_about_by_subject(trial.execution, trial.places, trial.scratch, self._evidence)
        self.discard()
        return iter(())

    def discard(self) -> None:
        """Take the scratch away."""
        if self._trial.scratch is not None:
            self._trial.scratch.remove()
