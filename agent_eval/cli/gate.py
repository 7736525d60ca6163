"""``gate guardrail|skill LINEAGE ...``: the two gates on the command line.

Owns options, exit codes (0 promote or done, 1 keep, 4 abstain, 2 invalid, 3 a ledger that does not hold) and signals while
commands run: an interrupted candidate is abstained and the incumbent restored before the process ends.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import EvidenceFault

if TYPE_CHECKING:
    from agent_eval.gates.result import Result

_CODES = {"promote": ExitCode.PASSED, "keep_incumbent": ExitCode.FAILED, "abstain": ExitCode.NOT_JUDGED, "invalid": ExitCode.USAGE}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    contracts = parser.add_subparsers(dest="contract", required=True, metavar="guardrail|skill")
    for contract, summary, actions in (
        ("guardrail", "policies against a frozen suite of attacks and benign cases", _GUARDRAIL),
        ("skill", "patches of a skill against held-out tasks", _SKILL),
    ):
        lineage = contracts.add_parser(contract, help=summary, allow_abbrev=False)
        lineage.add_argument("lineage", metavar="LINEAGE", help="the directory of the lineage")
        chosen = lineage.add_subparsers(dest="action", required=True, metavar="|".join(actions))
        for name, (about, declare) in actions.items():
            action = chosen.add_parser(name, help=about, description=about, allow_abbrev=False)
            declare(action)
            action.add_argument("--json", action="store_true", help="print the result as JSON")


def run(args: argparse.Namespace) -> int:
    """Do the action and print its result."""
    with unwritable(args.lineage):
        if args.action in ("status", "verify"):
            return read_only(args, args.contract, args.lineage)
        if args.contract == "guardrail" and args.action in ("baseline", "candidate"):
            return _under_signals(args)
        return report({"guardrail": _guardrail, "skill": _skill}[args.contract](args), args.json)


@contextlib.contextmanager
def unwritable(directory: str) -> Iterator[None]:
    """A full disk or a lost folder is a fault of the evidence, and the next command mends what was begun."""
    try:
        yield
    except OSError as error:
        what = f"could not be read or written: {error.strerror or error}"
        raise EvidenceFault.one(
            os.fspath(error.filename or directory), what, "make room or give access, and run the command again"
        ) from error


def report(result: Result, as_json: bool) -> int:
    """Print a result; returns its exit code."""
    from agent_eval.report.gates_text import exit_line, result_lines

    code = ExitCode.PASSED if result.decision is None else _CODES[result.decision.outcome.value]
    shown = {**result.to_json(), "exit_code": int(code)}
    print(
        json.dumps(shown, sort_keys=True)
        if as_json
        else "\n".join([*result_lines(shown), exit_line(code, decided=result.decision is not None)])
    )
    return code


def read_only(args: argparse.Namespace, contract: str, directory: str) -> int:
    """``status`` and ``verify`` of any contract."""
    from agent_eval.gates.audit import verify
    from agent_eval.gates.lineage import open_for_reading
    from agent_eval.report.gates_text import exit_line, status_lines, verification_lines

    lines: Callable[[Mapping], list[str]]
    if args.action == "verify":
        found = verify(directory, contract, args.head)
        code = ExitCode.PASSED if found.ok else ExitCode.EVIDENCE
        shown: Mapping = {**found.to_json(), "exit_code": int(code)}
        lines = verification_lines
    else:
        code, shown, lines = ExitCode.PASSED, _status_of(contract)(open_for_reading(directory, contract)), status_lines
    print(json.dumps(shown, sort_keys=True) if args.json else "\n".join([*lines(shown), exit_line(code)]))
    return code


def _status_of(contract: str) -> Callable:
    if contract == "skill":
        from agent_eval.gates.skill.promotion import status
    elif contract == "guardrail":
        from agent_eval.gates.guardrail.gate import status
    else:
        from agent_eval.gates.epoch.gate import status
    return status


def _guardrail(args: argparse.Namespace) -> Result:
    from agent_eval.gates.guardrail import gate

    if args.action == "init":
        return gate.init(args.lineage, args.config, args.actor, parent=args.parent)
    return gate.rollback(args.lineage, args.actor, restore=args.restore)


def _skill(args: argparse.Namespace) -> Result:
    from agent_eval.gates.skill import gate, promotion

    if args.action == "init":
        return gate.init(args.lineage, args.config, args.actor, parent=args.parent)
    if args.action == "propose":
        return gate.propose(args.lineage, args.patch, args.actor)
    if args.action == "measure":
        return gate.measure(args.lineage, args.record, args.actor, proposal=args.proposal)
    if args.action == "decide":
        return gate.decide(args.lineage, args.actor, proposal=args.proposal)
    if args.action == "review":
        return promotion.review(args.lineage, args.decision, args.actor, approve=args.approve, note=args.note, waiver=args.waiver)
    if args.action == "promote":
        return promotion.promote(args.lineage, args.actor, proposal=args.proposal, git=args.git)
    return promotion.rollback(args.lineage, args.actor, restore=args.restore, git=args.git)


def _under_signals(args: argparse.Namespace) -> int:
    """Run commands so that a signal ends them through the restore of the incumbent; exit 128 + signal if it cut the run."""
    import sys

    from agent_eval.gates.guardrail import gate
    from agent_eval.gates.guardrail.bench import CommandBench, Interruption
    from agent_eval.report.gates_text import CellProgress
    from agent_eval.supervise.process import prepare_process

    prepare_process()
    interruption = Interruption()
    finished = None if args.quiet else CellProgress(sys.stderr).finished

    def bench(config: Mapping, mark: str) -> CommandBench:
        return CommandBench(config, mark, interruption, finished)

    # One that is ignored (nohup) stays ignored.
    numbers = [n for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda received, _frame: interruption.request(received)) for number in numbers}
    try:
        if args.action == "baseline":
            result = gate.baseline(args.lineage, args.actor, bench=bench)
        else:
            result = gate.candidate(args.lineage, args.policy, args.actor, note=args.note, bench=bench)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    code = report(result, args.json)
    if interruption.signal is None or result.decision is None or "interrupted" not in result.decision.codes:
        return code
    print("interrupted: nothing was decided on its merits, and the incumbent is live", file=sys.stderr)
    return 128 + interruption.signal


def add_actor(parser: argparse.ArgumentParser, role: str = "who does this, as the ledger names them") -> None:
    """The name that the ledger keeps."""
    parser.add_argument("--actor", required=True, type=_actor_name, metavar="NAME", help=role)


def _actor_name(text: str) -> str:
    if not text.strip() or not text.isprintable() or len(text) > 200:
        raise argparse.ArgumentTypeError("must be a name of at most 200 printable characters")
    return text.strip()


def _init(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", required=True, metavar="FILE", help="the configuration to freeze")
    parser.add_argument("--parent", metavar="LINEAGE", help="the lineage that this one follows; scores are never carried over")
    add_actor(parser)


def _candidate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--policy", required=True, metavar="FILE", help="the candidate's bytes; the live policy is left alone until an accept"
    )
    parser.add_argument("--note", default="", help="free text for the record")
    _baseline(parser)


def _baseline(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    add_actor(parser)


def _proposal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--proposal", type=int, metavar="N", help="the proposal (default: the newest)")


def _propose(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--patch", required=True, metavar="FILE", help="the patch (agent-eval/skill-patch/1)")
    add_actor(parser, "the proposer")


def _measure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", required=True, metavar="FILE", help="one measurement (agent-eval/skill-measurement/1)")
    _proposal(parser)
    add_actor(parser)


def _decide(parser: argparse.ArgumentParser) -> None:
    _proposal(parser)
    add_actor(parser)


def _review(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--decision", required=True, metavar="DIGEST", help="the decision digest that is reviewed")
    verdict = parser.add_mutually_exclusive_group(required=True)
    verdict.add_argument("--approve", action="store_true", help="approve the candidate")
    verdict.add_argument("--refuse", dest="approve", action="store_false", help="refuse it")
    parser.add_argument("--waiver", metavar="REASON", help="why a directional gain is enough")
    parser.add_argument("--note", default="", help="free text for the record")
    add_actor(parser, "the reviewer: neither author nor proposer")


def _promote(parser: argparse.ArgumentParser) -> None:
    _proposal(parser)
    parser.add_argument("--git", action="store_true", help="make one commit of the declared files")
    add_actor(parser)


def _rollback(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--restore", action="store_true", help="put the present incumbent's bytes back instead of the previous one's")
    add_actor(parser)


def _rollback_git(parser: argparse.ArgumentParser) -> None:
    _rollback(parser)
    parser.add_argument("--git", action="store_true", help="make one commit of the declared files")


def add_verify(parser: argparse.ArgumentParser) -> None:
    """The option of ``verify``."""
    parser.add_argument("--head", metavar="HEX", help="a head that a witness kept: it must be in the ledger")


def nothing(parser: argparse.ArgumentParser) -> None:
    """An action without options."""


_Actions = dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]
_GUARDRAIL: _Actions = {
    "init": ("freeze target, judge, suite, rule and the incumbent's bytes", _init),
    "baseline": ("run the unguarded and the incumbent arm", _baseline),
    "candidate": ("screen, run and decide a policy; accept it or restore the incumbent", _candidate),
    "status": ("incumbent, candidates, coverage", nothing),
    "rollback": ("put the previous incumbent back, byte for byte", _rollback),
    "verify": ("check the ledger and derive every decision again", add_verify),
}
_SKILL: _Actions = {
    "init": ("freeze splits, conditions, rule and the incumbent's bytes", _init),
    "propose": ("screen a patch", _propose),
    "measure": ("record routing, effectiveness or activation", _measure),
    "decide": ("decide on a measured proposal", _decide),
    "review": ("approve or refuse an accepted candidate", _review),
    "promote": ("make a reviewed candidate live", _promote),
    "rollback": ("put the previous bytes back, exactly", _rollback_git),
    "status": ("proposals, live files, looks", nothing),
    "verify": ("check the ledger and derive every decision again", add_verify),
}
