"""``worker``: one trial for a coordinator on another machine; request on stdin, answer on stdout.

An exec'd process of its own: it is the subreaper of the trial and adopts no stranger's children. What
it sends back is plain data; it writes no evidence.
"""

from __future__ import annotations

import argparse
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
from agent_eval.records import shapes, strict_json
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
from agent_eval.trials.remote_answer import ANSWERS, files_bound
from agent_eval.trials.remote_call import frame, too_large
from agent_eval.trials.scheduler import Scheduler
from agent_eval.trials.tampering import brought_about_by_subject, is_content, read_regular

_REQUEST = shapes.record(
    {"argv": shapes.array(shapes.text()), "task_seed": shapes.optional(shapes.whole()), "mark": shapes.text(), "answers": ANSWERS}
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--lifeline", type=int, metavar="FD", help="a pipe whose end says that nobody waits for the answer any more")


def run(args: argparse.Namespace) -> int:
    """Read a request, run the trial, send the answer. Raises ``InvalidInput`` when there is no request."""
    request = _request(sys.stdin.buffer.read())
    if args.lifeline is not None:
        _check_lifeline(args.lifeline)
    try:
        last = _answer(request, args.lifeline)
    except _Refusal as error:
        last = str(error).encode()
    except InvalidInput as error:
        last = str(error).replace("\n", "; ").encode("utf-8", "backslashreplace")
    _send(b"")
    _send(last)
    sys.stdout.buffer.flush()
    return ExitCode.PASSED


class _Refusal(Exception):
    """Why this worker gives no answer, in words."""


def _send(data: bytes) -> None:
    for piece in frame(data):
        sys.stdout.buffer.write(piece)


def _request(data: bytes) -> dict:
    try:
        request = strict_json.parse_object(data)
        _REQUEST(request, "the request")
    except (strict_json.JsonError, shapes.ShapeError) as error:
        raise InvalidInput.one("run.py worker", f"no request on stdin ({error})", "an executor's workers start it: see --executor") from None
    if not request["argv"]:
        raise InvalidInput.one("run.py worker", "the request has no command line")
    return request


def _check_lifeline(descriptor: int) -> None:
    try:
        os.fstat(descriptor)
    except (OSError, OverflowError):
        raise InvalidInput.one("--lifeline", f"{descriptor} is no open descriptor", "an executor's workers give it") from None


def _answer(request: dict, lifeline: int | None) -> bytes:
    name, *rest = request["argv"]
    consumer = consumers.load(name)
    args = parse(consumer, CommandParser(prog=f"run.py {name}", allow_abbrev=False, add_help=False), rest)
    if request["task_seed"] is not None and hasattr(args, "seed"):
        args.seed = str(request["task_seed"])
    planned = consumer.plan(args)
    plan = make_plan(name, planned, tuple(request["argv"]), evaluator_record(consumers.folder_of(name)))
    if plan["plan_sha256"] != request["answers"]["plan_sha256"]:
        raise _Refusal("this worker's binary, fixtures or code are not the coordinator's (plan_sha256 differs)")
    return _run_trial(consumer, planned, request, lifeline)


def _run_trial(consumer: Consumer, planned: PlannedRun, request: dict, lifeline: int | None) -> bytes:
    prepare_process()
    answers = request["answers"]
    case = next((case for case in planned.cases if case.id == answers["case_id"]), None)
    if case is None:
        raise _Refusal("this worker's plan has no such case")
    number = answers["number"]
    with Scratch() as place, ScratchPool() as scratches, Interrupt() as interrupt, Slot(request["mark"]) as slot:
        evidence = place.subfolder("evidence")
        folder = os.path.join(evidence, layout.trial_folder(case.id, number))
        os.makedirs(folder, 0o700)
        tracker = IdentityTracker()
        trial = TrialRun(
            consumer, planned, case, number, tracker, lambda: TrialFolder(folder, case.id, number, Files()), evidence, scratches
        )
        if lifeline is not None:
            trial.services.add(lifeline, lambda: _end_for_nobody(trial, lifeline))
        Scheduler([slot], interrupt).run(iter([_OneTask(trial, evidence)]), lambda: False)
        files = _send_captured(trial, files_bound(planned.limits, case))
        if changed := tracker.changed_unseen():
            trial.execution.tampered = f"an identity file changed without a trace: {changed[0]}"
        return strict_json.canonical({**trial.execution.to_json(), "answers": answers, "files": files})


def _send_captured(trial: TrialRun, files_bytes: int) -> dict[str, str]:
    """Send the captured files as they were when they were captured; others are left out, and the trial says so. Returns the digests.

    One file at a time is held. Raises :class:`_Refusal` when they are more than ``files_bytes`` together.
    """
    sent: dict[str, str] = {}
    total_bytes = 0
    folder = trial.folder
    for name, sha256 in folder.files.items() if folder is not None else ():
        assert folder is not None
        path = os.path.join(folder.path, name)
        data = read_regular(path, files_bytes)
        if data is None or sha256_bytes(data) != sha256:
            if data is None and is_content(path, sha256):
                raise _Refusal(too_large(os.path.getsize(path), files_bytes))
            trial.execution.tampered = f"{name} was changed after it was captured"
            continue
        total_bytes += len(data)
        if total_bytes > files_bytes:
            raise _Refusal(too_large(total_bytes, files_bytes))
        _send(name.encode("ascii"))
        _send(data)
        sent[name] = sha256
    return sent


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
