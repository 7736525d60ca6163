"""One trial of an agent: lay out, run, look, keep.

Owns the order of a trial and what is retained of it. It judges nothing. What the
subject must not know (nonces, canaries, hidden tests) exists only in this process's
memory until the subject's processes are gone; ``revealed`` then tells it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace

from agent_eval import (
    Command,
    Limits,
    Outcome,
    Scratch,
    StopReason,
    TrialContext,
    TrialResult,
    build_environment,
    digests,
    identity,
    strict_json,
    workspace,
)

from .contract import CONTRACT
from .draws import DrawError
from .hidden_check import run_hidden_check
from .realise import Realised, Trial, lay_out, realise
from .scenario import HiddenCheck
from .templates import TemplateError
from .transports import Start, Task, Transport
from .witness import MAX_SOCKET_PATH_BYTES, Witness

TASK_FILE = "task.json"
BEFORE_FILE = "workspace-before.json"
AFTER_FILE = "workspace-after.json"
STDERR_FILE = "stderr.bin"


@dataclass(frozen=True, slots=True)
class RunMaterial:
    """What the trials of a run share, held in memory: a subject that rewrites the sources on disk changes nothing.

    ``hidden`` is by scenario name. ``identity_files`` are looked at before and after each trial. ``draw`` makes a trial's
    secrets; only the proof of a scenario draws them beforehand. ``replayed`` are drawings by ``CASE/NNN``.
    """

    transport: Transport
    hidden: Mapping[str, HiddenCheck]
    limits: Limits
    task_seed: int
    pass_names: tuple[str, ...] = ()
    identity_files: tuple[identity.IdentityFile, ...] = ()
    draw: Callable[[str], Trial] = Trial.drawn
    replayed: Mapping[str, Trial] = field(default_factory=dict)

    def drawing(self, trial: TrialContext, witness_path: str) -> Trial:
        """A new drawing, or the recorded one of a trial that is replayed: recorded answers hold its nonces."""
        recorded = self.replayed.get(f"{trial.case.id}/{trial.number:03d}")
        return self.draw(witness_path) if recorded is None else Trial(recorded.scenario_seed, None, witness_path)


def run_trial(trial: TrialContext, material: RunMaterial) -> Generator[Command, Outcome, TrialResult]:
    """One trial; the generator that the harness drives."""
    case = strict_json.parse_object(trial.case.data)
    try:
        return (yield from _with_witness(trial, material, case))
    except (DrawError, TemplateError) as error:
        # Only a scenario of the user's own can come here: a draw that mostly works and this time did not.
        return TrialResult(None, record={"not_drawn": str(error)})


def _with_witness(
    trial: TrialContext, material: RunMaterial, case: Mapping[str, object]
) -> Generator[Command, Outcome, TrialResult]:
    if "witness" not in case:
        return (yield from _conduct(trial, material, case, material.drawing(trial, ""), None))
    with _socket_folder(trial.scratch) as folder:
        drawing = material.drawing(trial, os.path.join(folder.path, "witness"))
        witness = Witness(drawing.witness_path, realise(case, drawing).witness_rules, _workspace_of(trial))
        try:
            trial.services.add(witness.fileno(), witness.serve)
            return (yield from _conduct(trial, material, case, drawing, witness))
        finally:
            trial.services.remove(witness.fileno())
            witness.close()


def _workspace_of(trial: TrialContext) -> str:
    return os.path.join(trial.scratch.path, "workspace")


def _socket_folder(scratch: Scratch) -> Scratch:
    # A private folder of its own; the name of a socket is bounded, and a long TMPDIR must not end a trial.
    room = MAX_SOCKET_PATH_BYTES - len("/agent-eval-123456789012345678/witness")
    parent = os.path.dirname(scratch.path)
    return Scratch(parent if len(os.fsencode(parent)) <= room else "/tmp")


def _conduct(
    trial: TrialContext, material: RunMaterial, case: Mapping[str, object], drawing: Trial, witness: Witness | None
) -> Generator[Command, Outcome, TrialResult]:
    realised = realise(case, drawing)
    root = _workspace_of(trial)
    lay_out(realised.files, root)
    before = workspace.snapshot(root)
    trial.folder.write(BEFORE_FILE, strict_json.canonical(before.to_json()) + b"\n")
    task = _task(trial, material, case, realised, root)
    start = material.transport.start(task)
    looked, reused = trial.identity.look(material.identity_files)
    before_it = []
    for argv in start.before:
        before_it.append((yield _command(material, task, replace(start, argv=argv, stdin_bytes=None), None)))
        if before_it[-1].stop_reason is StopReason.INTERRUPTED:
            outcome = before_it[-1]
            break
    else:
        outcome = yield _command(material, task, start, trial.folder.path)
    # Everything is looked at before anything else of the subject's runs again.
    seen = None if witness is None else witness.seen()
    _adopt_streams(trial, material, outcome)
    look_again, reused_again = trial.identity.look(material.identity_files)
    after_sha256 = _keep_after_state(trial, root, before, realised)
    extra = material.transport.finish(task, outcome, trial.folder)
    if before_it:
        extra["prepared"] = [each.to_json() for each in before_it]
    interrupted = outcome.stop_reason is StopReason.INTERRUPTED
    hidden_record = None
    hidden = material.hidden.get(case["scenario"])
    if hidden is not None and outcome.start_error is None and not interrupted:
        drawing = drawing.with_late_seed()
        realised = realise(case, drawing)
        hidden_record = yield from run_hidden_check(trial.folder, hidden, root, realised)
        hidden_record["after_sha256"] = after_sha256
    if not interrupted and material.transport.wants_control(extra):
        yield from _control_trial(material, task, extra)
    record = {"revealed": revealed(drawing, realised), "witness": seen, "hidden_check": hidden_record, **extra}
    return TrialResult(outcome, {"before": looked, "after": look_again, "reused": reused, "reused_after": reused_again}, record)


def revealed(drawing: Trial, realised: Realised) -> dict[str, object]:
    """What was secret until now: the seeds, and for people the values that they give."""
    values = {"secrets": dict(realised.values["s"])}
    if "late" in realised.values:
        values["late"] = dict(realised.values["late"])
    return {**drawing.to_json(), **values}


def _task(trial: TrialContext, material: RunMaterial, case: Mapping[str, object], realised: Realised, root: str) -> Task:
    document = {
        "contract": CONTRACT,
        "task_id": os.urandom(8).hex(),
        "instruction": realised.instruction,
        "tools": case["grants"],
        "max_steps": case["max_steps"],
        "sampling_seed": _sampling_seed(material.task_seed, trial.case.id, trial.number),
    }
    data = strict_json.canonical(document) + b"\n"
    trial.folder.write(TASK_FILE, data)
    task_path = os.path.join(trial.scratch.subfolder("task"), TASK_FILE)
    with open(task_path, "xb") as stream:
        stream.write(data)
    return Task(
        document=document,
        task_path=task_path,
        workspace=root,
        home=trial.scratch.subfolder("home"),
        tmpdir=trial.scratch.subfolder("tmp"),
        scenario=str(case["scenario"]),
        values=realised.values,
        witness_rules=realised.witness_rules,
        trial=f"{trial.case.id}/{trial.number:03d}",
    )


def _command(material: RunMaterial, task: Task, start: Start, folder: str | None) -> Command:
    """The subject's command; without ``folder`` its output is not kept."""
    limits = material.limits
    return Command(
        argv=start.argv,
        cwd=start.cwd,
        env=build_environment(home=task.home, tmpdir=task.tmpdir, pass_names=material.pass_names, extra=start.env),
        timeout_s=limits.timeout_s,
        max_output_bytes=limits.max_output_bytes,
        grace_s=limits.grace_s,
        stdout_path=None if folder is None else os.path.join(folder, material.transport.stdout_name),
        stderr_path=None if folder is None else os.path.join(folder, STDERR_FILE),
        stdin_bytes=start.stdin_bytes,
    )


def _control_trial(material: RunMaterial, task: Task, record: dict[str, object]) -> Generator[Command, Outcome, None]:
    """The same agent in folders of its own, asked for what was not granted. It is no planned trial and is not judged."""
    with Scratch() as private:
        names = {name: private.subfolder(name) for name in ("workspace", "home", "tmp", "task")}
        control = replace(
            task, workspace=names["workspace"], home=names["home"], tmpdir=names["tmp"], task_path=os.path.join(names["task"], TASK_FILE)
        )
        start = material.transport.control_start(control)
        for argv in (*start.before, start.argv):
            yield _command(material, control, replace(start, argv=argv), None)
        material.transport.control_end(control, record)


def _sampling_seed(task_seed: int, case_id: str, number: int) -> int:
    """A seed for the subject's own sampling; one-way, so that it tells nothing of the task seed."""
    return int(digests.sha256_bytes(f"sampling {task_seed} {case_id} {number}".encode())[:8], 16) >> 1


def _adopt_streams(trial: TrialContext, material: RunMaterial, outcome: Outcome) -> None:
    for name, stream in ((material.transport.stdout_name, outcome.stdout), (STDERR_FILE, outcome.stderr)):
        if stream.sha256 is not None and stream.write_error is None:
            trial.folder.adopt(name, stream.sha256, stream.content)


def _keep_after_state(trial: TrialContext, root: str, before: workspace.Snapshot, realised: Realised) -> str:
    after = workspace.snapshot(root)
    changes = workspace.difference(before, after)
    captured = workspace.capture(root, changes, lambda _, data: trial.folder.keep_content(data))
    # What was changed or removed is kept as it was laid out too: a reader wants to see the difference.
    laid_out = {digests.sha256_bytes(file.data): file.data for file in realised.files}
    for change in changes:
        if change.before is not None and change.before.sha256 in laid_out:
            trial.folder.keep_content(laid_out[change.before.sha256])
    document = {
        **after.to_json(),
        "changes": [change.to_json() for change in changes],
        "captured": captured.to_json(),
    }
    return trial.folder.write(AFTER_FILE, strict_json.canonical(document) + b"\n")
