"""From argv to an exit code: choose the command, run it, turn typed errors into lines.

Owns the top-level help, the streams, and the last resort for an internal error. It
parses no command's options.
"""

from __future__ import annotations

import os
import sys

from agent_eval.cli.streams import guard_streams, output_lost, require_printed
from agent_eval.cli.table import COMMANDS, HIDDEN
from agent_eval.records.exit_codes import ExitCode
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem

_ELSEWHERE = "the exit code stands, and run.py status and show say the rest from the evidence"


def main(argv: list[str]) -> int:
    """Run one command line and return its exit code. Prints; never raises."""
    streams = guard_streams()
    try:
        return _told(_dispatch(argv))
    except InvalidInput as error:
        return _say(error.problems, ExitCode.USAGE)
    except EvidenceFault as error:
        return _say(error.problems, ExitCode.EVIDENCE)
    except KeyboardInterrupt:
        return _say((Problem("", "interrupted before anything ran"),), ExitCode.INTERRUPTED)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except Exception as error:
        if os.environ.get("AGENT_EVAL_DEBUG"):
            raise
        place = _where(error)
        text = f"{type(error).__name__}: {error} ({place})"
        return _say((Problem("internal error", text, "set AGENT_EVAL_DEBUG=1 for the traceback, and report it"),), ExitCode.INTERNAL)
    finally:
        streams.finish()


def _told(code: int) -> int:
    """``code``, after saying that the result could not be printed when it could not. The code stands: it is about the trials."""
    lost = output_lost()
    if lost is not None:
        _say((Problem("standard output", f"cannot be written ({lost})", _ELSEWHERE),), ExitCode.USAGE)
    return code


def _dispatch(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        _print_help()
        require_printed()
        return ExitCode.PASSED if argv else ExitCode.USAGE
    name, rest = argv[0], argv[1:]
    if name == "--version":
        from agent_eval.grade.evaluator import VERSION

        print(f"agent-eval {VERSION}")
        require_printed()
        return ExitCode.PASSED
    from agent_eval.cli import consumers
    from agent_eval.cli.parsing import CommandParser

    parser = CommandParser(prog=f"run.py {name}", allow_abbrev=False)
    known = {**COMMANDS, **HIDDEN}
    if name in known:
        import importlib

        module = importlib.import_module(known[name][0])
        parser.description = known[name][1]
        module.add_arguments(parser)
        return int(module.run(parser.parse_args(rest)))
    if name in consumers.command_names():
        from agent_eval.cli import run_command

        return int(run_command.run(name, parser, rest))
    raise InvalidInput.one(name, "no such command", _nearest(name, [*consumers.command_names(), *COMMANDS]))


def _nearest(name: str, known: list[str]) -> str:
    import difflib

    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]}?" if close else "run.py --help lists the commands"


def _print_help() -> None:
    from agent_eval.cli import consumers

    print("usage: run.py COMMAND [options]\n\nRun a trial, keep the evidence, judge it, and judge it again years later.\n")
    rows = [(name, consumers.summary_of(name)) for name in consumers.command_names()]
    rows += [(name, text) for name, (_, text) in COMMANDS.items()]
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"  {name:<{width}}  {text}")
    print("\nrun.py COMMAND --help says more. Exit codes: 0 passed, 1 failed, 2 usage, 3 evidence, 4 not judged,")
    print("5 incomplete, 70 internal, 129/130/143 interrupted by a signal.")


def _say(problems: tuple[Problem, ...], code: ExitCode) -> ExitCode:
    from agent_eval.report.visible_text import escape

    for problem in problems:
        print(f"error: {escape(str(problem))}", file=sys.stderr)
    return code


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "?" if trace is None else f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"
