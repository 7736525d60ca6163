"""A real agent CLI as the subject of a run: what is looked at before anything runs, and what the plan keeps.

Owns finding and probing the CLI. Everything that can be wrong with adapter, binary, interpreter,
launcher, login files, prices and recording is said here, before a trial.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval import Command, InvalidInput, Limits, Problem, Scratch, Slot, build_environment, digests, identity, strict_json

from .adapter import identity_files, launch, load
from .adapter.model import Adapter
from .replay_source import ReplaySource
from .subject import check_program, select_binary
from .transports.adapter import AdapterRun, AdapterTransport

PROBE_TIMEOUT_S = 60.0
PROBE_OUTPUT_BYTES = 1 << 20
DEFAULT_MAX_REQUESTS = 60
#: Texts in a login file from this length on are taken for tokens, and kept out of the model record.
_MIN_TOKEN_CHARS = 16


@dataclass(frozen=True, slots=True)
class AdapterSubject:
    """A CLI that was found and looked at. ``version`` is ``None`` when it gave none that the adapter understands."""

    transport: AdapterTransport
    adapter: Adapter
    run: AdapterRun
    installation: identity_files.Installation
    version: str | None
    program: str
    selected_by: str
    warnings: tuple[str, ...]
    source: ReplaySource | None

    @property
    def identity_files(self) -> tuple[identity.IdentityFile, ...]:
        """What is looked at before and after every trial."""
        return self.installation.files

    @property
    def scripted(self) -> bool:
        """Whether no model decides, or none decided when it was recorded."""
        return self.run.mode == "scripted" or (self.source is not None and self.source.scripted)

    def to_json(self, pass_names: tuple[str, ...]) -> dict[str, object]:
        """What the plan retains."""
        entries, _ = identity.IdentityTracker().look(self.installation.files)
        return {
            "transport": {**self.transport.to_json(), "program": os.path.basename(self.program)},
            "name": self.adapter.name,
            "version": self.version,
            "subject_kind": "scripted" if self.scripted else "model",
            "sha256": digests.sha256_file(self.installation.runs),
            "contract": None,
            "files": [{"role": e["role"], "name": os.path.basename(e["path"]), "sha256": e.get("sha256")} for e in entries],
            "tree_sha256": self.installation.tree_sha256,
            "tree_files": self.installation.tree_files,
            "pass_env": list(pass_names),
        }

    def notes(self, pass_names: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
        """What the person who started the run should know."""
        lines = [f"agent: {self.program} ({self.selected_by}), adapter {self.adapter.name}, version {self.version or 'unknown'}"]
        if self.installation.runs != os.path.realpath(self.program):
            lines.append(f"what really runs: {self.installation.runs}")
        lines += [f"--pass-env {name}: not set here, so the agent does not get it" for name in pass_names if name not in environment]
        if self.run.mode == "scripted":
            lines.append(f"the model is scripted ({self.run.conduct}): this run proves the plumbing only")
        lines += self.warnings
        return tuple(lines)


def find_subject(
    args: argparse.Namespace, limits: Limits, solutions: Mapping[str, Mapping[str, object]], environment: Mapping[str, str]
) -> AdapterSubject:
    """Read the adapter, find and look at the CLI. Raises ``InvalidInput``."""
    adapter, document = load.load_with_bytes(args.adapter)
    program, selected_by = select_binary(args.binary, environment, (adapter.name,))
    check_program(program)
    home = environment.get("HOME", "")
    problems: list[Problem] = []
    launcher: tuple[str, ...] = ()
    prices = None
    try:
        launcher = launch.read_launcher(args.launcher) if args.launcher else ()
    except InvalidInput as error:
        problems += error.problems
    try:
        launch.check_home_files(args.home_file, home)
    except InvalidInput as error:
        problems += error.problems
    try:
        prices = read_prices(args.prices) if args.prices else None
    except InvalidInput as error:
        problems += error.problems
    if problems:
        raise InvalidInput(problems)
    installation = identity_files.find_installation(adapter, program)
    version, warnings = _look(adapter, installation, launcher)
    source = ReplaySource(args.replay) if args.replay else None
    run = AdapterRun(
        adapter=adapter,
        document=document,
        binary=program,
        package_root=installation.package_root,
        mode="record" if args.model_base_url else "replay" if args.replay else "scripted",
        model=args.model or adapter.model,
        max_requests=args.max_model_requests or adapter.max_model_requests or DEFAULT_MAX_REQUESTS,
        timeout_s=limits.timeout_s,
        base_url=args.model_base_url,
        key=environment[args.model_key_env] if args.model_key_env else None,
        conduct=args.policy,
        after=args.policy_after,
        solutions=solutions,
        launcher=launcher,
        home=home,
        home_files=tuple(dict.fromkeys(args.home_file)),
        secrets=_secrets(args, home, environment),
        prices=prices,
        recording=source.materialise if source else None,
    )
    warnings += tuple(f"--home-file {name}: the agent can read it; it is deleted with the trial and never kept" for name in run.home_files)
    if launcher:
        warnings += (f"launcher: {' '.join(launcher)}",)
    transport = AdapterTransport(adapter, document, run)
    return AdapterSubject(transport, adapter, run, installation, version, program, selected_by, warnings, source)


def _look(adapter: Adapter, installation: identity_files.Installation, launcher: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The CLI's version, and what the person should know of it. Raises ``InvalidInput`` for an interpreter that is too old."""
    warnings: list[str] = []
    wanted = identity_files.interpreter_command(adapter, installation)
    if wanted is not None and wanted[1]:
        text = _output((wanted[0], "--version"), {})
        if text is not None and not identity_files.version_at_least(text, wanted[1]):
            raise InvalidInput.one("--binary", f"needs {adapter.identity.interpreter}, {wanted[0]} is {text.strip()}", "put a newer one first on PATH")
    probe = adapter.identity.version
    if probe is None:
        return None, ()
    fixed = {**{name: value for name, value in adapter.execution.env.items() if "{" not in value}, **probe.env}
    output = _output(launch.wrapped(launcher, (installation.binary, *probe.argv)), fixed, probe.ok)
    match = probe.expression.search(output) if output is not None else None
    version = match[1] if match else None
    if version is None:
        warnings.append(f"{adapter.name} gave no version that its adapter understands")
    elif adapter.tried_version and version != adapter.tried_version:
        warnings.append(f"the adapter was tried with {adapter.name} {adapter.tried_version}, this is {version}")
    return version, tuple(warnings)


def _output(argv: tuple[str, ...], extra: Mapping[str, str], ok: tuple[int, ...] = (0,)) -> str | None:
    """What a program prints on both streams, supervised and bounded; ``None`` when it ends otherwise than ``ok``."""
    with Scratch() as private, Slot(f"probe-{os.urandom(8).hex()}") as slot:
        home = private.subfolder("home")
        streams = [os.path.join(private.path, name) for name in ("stdout", "stderr")]
        outcome = slot.run(Command(
            argv=argv, cwd=home, env=build_environment(home=home, tmpdir=private.subfolder("tmp"), extra=extra),
            timeout_s=PROBE_TIMEOUT_S, max_output_bytes=PROBE_OUTPUT_BYTES, grace_s=0.5, stdout_path=streams[0],
            stderr_path=streams[1],
        ))
        if outcome.start_error is not None:
            raise InvalidInput.one(argv[0], f"cannot be started: {outcome.start_error.message}", "give the program of the agent")
        if outcome.stop_reason is not None:
            raise InvalidInput.one(argv[0], f"did not answer {' '.join(argv[1:])} within {PROBE_TIMEOUT_S:g} s", "give the program of the agent")
        if outcome.exit_code not in ok:
            return None
        texts = []
        for path in streams:
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
        return "\n".join(texts)


def read_prices(path: str) -> dict[str, tuple[float, float]]:
    """Model name to price per million input and output tokens. Raises ``InvalidInput`` with every problem."""
    try:
        with open(path, "rb") as file:
            models = strict_json.parse_object(file.read(1 << 20)).get("models")
    except OSError as error:
        raise InvalidInput.one("--prices", f"{path}: {error.strerror}") from None
    except strict_json.JsonError as error:
        raise InvalidInput.one(path, f"is not one JSON object: {error}") from None
    if not isinstance(models, dict):
        raise InvalidInput.one(f"{path}#/models", "is not an object of prices by model name")
    problems, prices = [], {}
    for name, price in models.items():
        fields = [price.get(key) if isinstance(price, dict) else None for key in ("input_per_million", "output_per_million")]
        if all(isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0 for value in fields):
            prices[name] = (float(fields[0]), float(fields[1]))
        else:
            problems.append(Problem(f"{path}#/models/{name}", "needs input_per_million and output_per_million, numbers from 0 on"))
    if problems:
        raise InvalidInput(problems)
    return prices


def _secrets(args: argparse.Namespace, home: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Values that must not be written: those passed by name, and the tokens in login files."""
    values = [environment[name] for name in args.pass_env if environment.get(name)]
    for name in args.home_file:
        with open(os.path.join(home, name), encoding="utf-8", errors="surrogateescape") as file:
            text = file.read(1 << 20)
        try:
            values += [item for item in _texts(json.loads(text)) if len(item) >= _MIN_TOKEN_CHARS]
        except (ValueError, RecursionError):
            values += [word for word in text.split() if len(word) >= _MIN_TOKEN_CHARS]
    return tuple(dict.fromkeys(values))


def _texts(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
