"""Starting one program: the only place that makes a child.

Owns turning the four exception types of a failed start into one
:class:`~agent_eval.records.outcome.StartError`. ``subprocess`` is used for its fork and exec
alone; nothing of it ever waits for the child (cpython issue 96863). ``posix_spawn`` was measured
level with it, and refused: glibc's leaves the two signals of its own threads ignored in the child.
"""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence

from agent_eval.records.outcome import StartError


class StartFailed(Exception):
    """The program never ran."""

    def __init__(self, error: StartError) -> None:
        super().__init__(error.message)
        self.error = error


def failed(stage: str, error: OSError, what: str) -> StartFailed:
    """The failure of ``stage`` as a :class:`StartFailed` that names ``what`` and the system's reason."""
    return StartFailed(StartError(stage=stage, message=f"{what}: {error.strerror or error}", errno=error.errno))


def start(argv: Sequence[str], env: Mapping[str, str], cwd: str, stdio: tuple[int, int, int]) -> int:
    """Start ``argv`` in ``cwd`` as leader of its own session; returns its process id.

    ``stdio`` become descriptors 0-2, and it gets no others. It inherits the caller's signal mask and ignored
    signals; caught ones become default. Changes the caller's working directory, and its environment, which becomes the
    program's when it has been that twice in a row. Raises :class:`StartFailed`.
    """
    if not argv:
        raise StartFailed(StartError(stage="argv", message="the argument list is empty"))
    # First, because a missing folder and a missing program share ENOENT.
    try:
        os.chdir(cwd)
    except OSError as error:
        raise failed("cwd", error, f"working directory {cwd!r}") from None
    except (ValueError, TypeError) as error:  # a NUL byte, a lone surrogate, no text at all
        raise StartFailed(StartError(stage="cwd", message=f"working directory {cwd!r}: {error}")) from None
    try:
        child = subprocess.Popen(argv, env=_environment.to_give(env), stdin=stdio[0], stdout=stdio[1], stderr=stdio[2], start_new_session=True)
    except OSError as error:
        raise _exec_failure(argv[0], error) from None
    except (ValueError, TypeError) as error:
        raise _bad_value(argv, error) from None
    child.returncode = 0  # its own bookkeeping must never wait for the child: the status is ours to take
    return child.pid


class _Environment:
    """Which environment a program gets, and whether it is our own by now.

    ``subprocess`` encodes a given environment anew for every start, which costs as much as the rest of a start does.
    """

    def __init__(self) -> None:
        self._last: Mapping[str, str] = {}
        self._ours = False

    def to_give(self, env: Mapping[str, str]) -> Mapping[str, str] | None:
        """``env``, or ``None`` when it was that of the start before as well and could be made our own."""
        if env != self._last:
            self._last, self._ours = dict(env), False
            return env
        if not self._ours:
            try:
                os.environ.clear()
                os.environ.update(env)
            except (OSError, ValueError, TypeError):  # a name that only a list of assignments can hold
                return env
            self._ours = True
        return None


_environment = _Environment()


def _exec_failure(program: str, error: OSError) -> StartFailed:
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return failed("fork", error, "a new process")
    if error.errno == errno.EMFILE:
        return failed("setup", error, "a pipe")
    if error.errno == errno.ENOENT and "/" in program and os.path.exists(program):
        return failed("exec", error, f"the interpreter that {program!r} names")
    return failed("exec", error, f"program {program!r}")


def _bad_value(argv: Sequence[str], error: Exception) -> StartFailed:
    """A value that cannot be handed to a program: a NUL, a lone surrogate, an ``=`` in a name, no text at all."""
    stage, what = ("argv", "an argument") if any(_unfit(value) for value in argv) else ("env", "a variable")
    return StartFailed(StartError(stage=stage, message=f"{what}: {error}"))


def _unfit(value: object) -> bool:
    try:
        return not isinstance(value, str) or b"\0" in os.fsencode(value)
    except UnicodeEncodeError:
        return True
