"""Who is tried: choosing the agent's program, asking for its contract, fixing its identity.

Owns the selection (``--binary``, then a variable, then names on PATH), the supervised and
bounded probe, and what the plan keeps of it. Nothing here is a trial: whatever is wrong with the
program ends the command before one, as invalid input.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass

from agent_eval import Command, InvalidInput, Problem, Scratch, Slot, build_environment, digests, identity

from .contract import MAX_CONTRACT_BYTES, Contract, model_problems, read_contract, refuse
from .transports import Transport
from .transports.native import BinaryTransport, FixtureTransport

BINARY_VARIABLE = "RHO_EVAL_CORE_BINARY"
NAMES_ON_PATH = ("core-agent", "rho-core")
PROBE_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True)
class Subject:
    """A subject that answered. ``contract`` is ``None`` for a fixture that answers none."""

    transport: Transport
    program: str
    selected_by: str
    contract: Contract | None
    identity_files: tuple[identity.IdentityFile, ...]

    @property
    def scripted(self) -> bool:
        """Whether it says itself that no model decides."""
        return self.contract is not None and self.contract.subject_kind == "scripted"

    def to_json(self, pass_names: tuple[str, ...]) -> dict[str, object]:
        """What the plan retains."""
        entries, _ = identity.IdentityTracker().look(self.identity_files)
        return {
            "transport": {**self.transport.to_json(), "program": os.path.basename(self.program)},
            "name": self.contract.name if self.contract else os.path.basename(self.program),
            "version": self.contract.version if self.contract else None,
            "subject_kind": self.contract.subject_kind if self.contract else None,
            "sha256": digests.sha256_file(os.path.realpath(self.program)),
            "contract": self.contract.document if self.contract else None,
            "files": [{"role": e["role"], "name": os.path.basename(e["path"]), "sha256": e.get("sha256")} for e in entries],
            "pass_env": list(pass_names),
        }

    def notes(self, pass_names: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
        """What the person who started the run should know."""
        lines = [f"agent: {self.program} ({self.selected_by})"]
        lines += [f"--pass-env {name}: not set here, so the agent does not get it" for name in pass_names if name not in environment]
        if self.contract is None:
            lines.append("the fixture answers no contract: its name, version and model are unknown")
        elif self.scripted:
            lines.append(f"{self.contract.name} {self.contract.version} is scripted: this run proves the plumbing only")
        else:
            lines.append(f"{self.contract.name} {self.contract.version}, decided by a model")
        return tuple(lines)


def transport_problems(args: argparse.Namespace) -> list[Problem]:
    """Options that do not go together."""
    problems = []
    if args.transport == "fixture" and args.fixture_binary is None:
        problems.append(Problem("--transport fixture", "needs the fixture program", "add --fixture-binary /abs/fixture"))
    if args.fixture_binary is not None and args.transport != "fixture":
        problems.append(Problem("--fixture-binary", "is for the fixture transport", "add --transport fixture"))
    if args.transport == "fixture" and args.binary is not None:
        problems.append(Problem("--binary", "is not for the fixture transport", "give --fixture-binary alone, or leave out --transport fixture"))
    for name in args.pass_env:
        if not name or "=" in name or "\0" in name:
            problems.append(Problem("--pass-env", f"{name!r} is not a name of a variable", "give a name; its value comes from the environment"))
    return problems


def find_subject(args: argparse.Namespace, environment: Mapping[str, str]) -> Subject:
    """Choose the program and ask for its contract. Raises ``InvalidInput`` with one clear line."""
    fixture = args.transport == "fixture"
    if fixture:
        program, selected_by = os.path.abspath(args.fixture_binary), "--fixture-binary"
    else:
        program, selected_by = select_binary(args.binary, environment)
    check_program(program)
    contract = probe(program, tuple(args.pass_env), lenient=fixture)
    if contract is not None:
        wanted = "fixture" if fixture else "binary"
        if wanted not in contract.transports:
            raise refuse(program, f"its contract does not offer the transport {wanted!r}")
        problems = model_problems(contract, args.pass_env, environment)
        if problems:
            raise InvalidInput(problems)
    transport = (FixtureTransport if fixture else BinaryTransport)(program)
    return Subject(transport, program, selected_by, contract, _identity_files(program, contract, environment))


def select_binary(binary: str | None, environment: Mapping[str, str], names: tuple[str, ...] = NAMES_ON_PATH) -> tuple[str, str]:
    """The program and what selected it. Raises ``InvalidInput`` when nothing did."""
    if binary is not None:
        return os.path.abspath(binary), "--binary"
    if environment.get(BINARY_VARIABLE):
        return os.path.abspath(environment[BINARY_VARIABLE]), BINARY_VARIABLE
    for name in names:
        found = identity.resolve_program(name, environment.get("PATH", os.defpath), os.getcwd())
        if found is not None:
            return os.path.abspath(found), f"{name} on PATH"
    raise InvalidInput.one(
        "--binary", f"no agent was named, {BINARY_VARIABLE} is not set, and {' or '.join(names)} is not on PATH", "give --binary /abs/agent"
    )


def check_program(program: str) -> None:
    """Raise ``InvalidInput`` for what cannot be a program."""
    if "\0" in program or not os.path.lexists(program):
        raise InvalidInput.one(program, "does not exist", "give the path of the agent's program")
    if not os.path.exists(program):
        raise InvalidInput.one(program, "is a link that leads nowhere", "give the path of the agent's program")
    if not os.path.isfile(program):
        raise InvalidInput.one(program, "is not a regular file", "give the path of the agent's program")
    if not os.access(program, os.X_OK):
        raise InvalidInput.one(program, "is not executable", f"chmod +x {program}")


def probe(program: str, pass_names: tuple[str, ...], *, lenient: bool = False) -> Contract | None:
    """Run ``PROGRAM contract`` under the supervisor. With ``lenient`` a program without an answer is taken as it is.

    Raises ``InvalidInput`` with one line.
    """
    with _private_folder() as private, Slot(f"contract-{os.urandom(8).hex()}") as slot:
        home = private.subfolder("home")
        output, complaint = os.path.join(private.path, "contract.json"), os.path.join(private.path, "stderr")
        outcome = slot.run(
            Command(
                argv=(program, "contract"),
                cwd=home,
                env=build_environment(home=home, tmpdir=private.subfolder("tmp"), pass_names=pass_names),
                timeout_s=PROBE_TIMEOUT_S,
                max_output_bytes=MAX_CONTRACT_BYTES,
                grace_s=0.5,
                stdout_path=output,
                stderr_path=complaint,
            )
        )
        data = _kept(output, outcome.stdout.kept_bytes)
        said = _kept(complaint, outcome.stderr.kept_bytes).decode("utf-8", "backslashreplace").strip().splitlines()
    if outcome.start_error is not None:
        raise refuse(program, f"cannot be started: {outcome.start_error.message}")
    if outcome.stop_reason is not None:
        reasons = {"timeout": f"did not answer within {PROBE_TIMEOUT_S:g} s", "output-limit": f"answered with more than {MAX_CONTRACT_BYTES} bytes"}
        what = f"'contract' {reasons.get(outcome.stop_reason.value, outcome.stop_reason.value)}"
    elif outcome.signal is not None:
        what = f"'contract' died of signal {outcome.signal}"
    elif outcome.exit_code != 0:
        last = f" ({said[-1][:200]})" if said else ""
        what = f"'contract' ended with exit code {outcome.exit_code}{last}"
    else:
        try:
            return read_contract(data)
        except ValueError as error:
            what = f"answered nonsense to 'contract': {error}"
    if lenient:
        return None
    raise refuse(program, what)


def _private_folder() -> Scratch:
    try:
        return Scratch()
    except OSError as error:
        folder = os.environ.get("TMPDIR") or "/tmp"
        raise InvalidInput.one("TMPDIR", f"no folder can be made in {folder} ({error.strerror})", "set TMPDIR to a folder that you may write") from None


def _kept(path: str, kept_bytes: int) -> bytes:
    if not kept_bytes:
        return b""
    with open(path, "rb") as stream:
        return stream.read()


def _identity_files(program: str, contract: Contract | None, environment: Mapping[str, str]) -> tuple[identity.IdentityFile, ...]:
    files = identity.command_files([program], environment.get("PATH", os.defpath), os.getcwd())
    named = {file.path for file in files}
    extra = contract.identity_files if contract else ()
    return (*files, *(identity.IdentityFile(path, "part") for path in extra if path not in named))
