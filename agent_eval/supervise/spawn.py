"""Starting one program: the only place that makes a child.

Owns the search along PATH and turning the four exception types of a failed start into one
:class:`~agent_eval.records.outcome.StartError`. ``posix_spawn`` was measured level with
``subprocess`` here; it is taken because it resets signals itself, so that the guardian may ignore
them, and because no object of it ever waits behind our back (cpython issue 96863).
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence

from agent_eval.records.outcome import StartError

_ALL_SIGNALS = tuple(number for number in signal.valid_signals() if number not in (signal.SIGKILL, signal.SIGSTOP))
_HAS_SETSID = hasattr(os, "posix_spawn") and hasattr(os, "setsid")


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

    ``stdio`` become descriptors 0-2; everything else has to be close-on-exec. Signals get their default
    dispositions and an empty mask. Changes the caller's working directory. Raises :class:`StartFailed`.
    """
    if not argv:
        raise StartFailed(StartError(stage="argv", message="the argument list is empty"))
    # First, because a missing folder and a missing program share ENOENT.
    try:
        os.chdir(cwd)
    except OSError as error:
        raise failed("cwd", error, f"working directory {cwd!r}") from None
    except ValueError as error:  # a NUL byte, or (UnicodeEncodeError) a lone surrogate
        raise StartFailed(StartError(stage="cwd", message=f"working directory {cwd!r}: {error}")) from None
    missing: OSError | None = None
    for path in _candidates(argv[0], env):
        try:
            return _spawn(path, argv, env, stdio)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EACCES):
                raise _exec_failure(path, error) from None
            if missing is None or error.errno == errno.EACCES:
                missing = error
        except (ValueError, TypeError) as error:
            raise _bad_value(argv, env, error) from None
    raise _exec_failure(argv[0], missing or OSError(errno.ENOENT, os.strerror(errno.ENOENT)))


def _spawn(path: str, argv: Sequence[str], env: Mapping[str, str], stdio: tuple[int, int, int]) -> int:
    if not _HAS_SETSID:
        return _spawn_portably(path, argv, env, stdio)
    actions = [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(stdio)]
    return os.posix_spawn(path, argv, env, file_actions=actions, setsid=True, setsigdef=_ALL_SIGNALS, setsigmask=())


def _spawn_portably(path: str, argv: Sequence[str], env: Mapping[str, str], stdio: tuple[int, int, int]) -> int:
    import subprocess

    child = subprocess.Popen(
        list(argv), executable=path, env=env, stdin=stdio[0], stdout=stdio[1], stderr=stdio[2], start_new_session=True
    )
    # Its own bookkeeping must never wait for the child: the status is ours to take.
    child.returncode = 0
    return child.pid


def _candidates(program: str, env: Mapping[str, str]) -> list[str]:
    """The paths to try, as ``execvp`` does, along the PATH that the child will have."""
    if "/" in program or not program:
        return [program]
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return [f"{folder or '.'}/{program}" for folder in folders]


def _exec_failure(path: str, error: OSError) -> StartFailed:
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return failed("fork", error, "a new process")
    if error.errno == errno.ENOENT and "/" in path and os.path.exists(path):
        return failed("exec", error, f"the interpreter that {path!r} names")
    return failed("exec", error, f"program {path!r}")


def _bad_value(argv: Sequence[str], env: Mapping[str, str], error: Exception) -> StartFailed:
    """A value that cannot be handed to a program: a NUL, a lone surrogate, an ``=`` in a name, no string at all."""
    stage = "argv" if any(_unfit(value) for value in argv) else "env"
    return StartFailed(StartError(stage=stage, message=f"{'an argument' if stage == 'argv' else 'a variable'}: {error}"))


def _unfit(value: object) -> bool:
    try:
        return not isinstance(value, str) or b"\0" in os.fsencode(value)
    except UnicodeEncodeError:
        return True
