"""Making this process fit to supervise: descriptors, SIGCHLD, subreaper.

Owns the state that the harness process itself needs. It installs no handlers for the
signals that a user sends: what they mean for a run is decided by the command line.
"""

from __future__ import annotations

import os
import signal

from agent_eval.supervise import linux

_children_are_ours = False


def prepare_process() -> None:
    """The first act of a harness process that supervises.

    Points missing descriptors 0-2 at ``/dev/null`` (a file opened there would receive what is meant for the
    terminal: cpython issue 77025), resets SIGCHLD (ignored by our parent, it makes every status read as 0:
    cpython issue 96863), unblocks signals, becomes a subreaper, and keeps processes of the same ordinary
    user out of this one's descriptors.
    """
    global _children_are_ours
    while (fd := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(fd, True)
    os.close(fd)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # writing to a guardian that was killed is an error, not our end
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    had_children = bool(linux.children_of(os.getpid()))
    if linux.become_subreaper() and os.getpid() != 1 and not had_children:
        _children_are_ours = True
    linux.forbid_inspection()


def children_are_ours() -> bool:
    """Whether every orphan that reaches this process comes from a trial.

    True after :func:`prepare_process` in a process that had no children before and is not process 1 of a
    container, to which the kernel gives the orphans of strangers.
    """
    return _children_are_ours
