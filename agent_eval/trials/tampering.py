"""Whether a trial's own processes kept it from being recorded.

Owns telling a subject's doing from a fault of the machine: the first is a failure, the second void. It
writes nothing, and deletes a scratch only to see whether that was what filled the disk.
"""

from __future__ import annotations

import errno
import os

from agent_eval.records.digests import read_file, sha256_file
from agent_eval.supervise.scratch import Scratch
from agent_eval.trials.execution import Execution, Place

_FULL = (errno.ENOSPC, errno.EDQUOT)
# The folder was made new for the trial, so that only its subject can have put something there (a link is EEXIST or ELOOP, too).
_PLANTED = (os.strerror(errno.EEXIST), os.strerror(errno.ELOOP))
_NOTICEABLE_BYTES = 64 * 1024
_MAX_FILE_BYTES = 2 << 30  # no file of a trial is larger: what is, was put there

Places = tuple[Place | None, Place | None]


def is_moved(places: Places | None) -> bool:
    """Whether the evidence was another one when the trial ended. ``None``: the trial did not run here."""
    return places is not None and places[0] != places[1]


def is_replaced(places: Places | None) -> bool:
    """Whether the trial's folder is another one than was made: what is written by its path would go elsewhere."""
    if places is None:
        return False
    before, after = places
    return before is None or after is None or [found[:2] for found in before] != [found[:2] for found in after]


def brought_about_by_subject(execution: Execution, places: Places | None, scratch: Scratch | None, evidence: str) -> str | None:
    """How the subject made recording fail, ``None`` when nothing shows that it did. ``evidence`` is the directory."""
    if execution.tampered is not None:
        return execution.tampered
    if is_moved(places):
        return "the evidence directory was moved or its mode changed while the trial ran"
    if places is not None and any(sign in text for text in execution.errors for sign in _PLANTED):
        return "a file of the trial's record was there before it was written"
    full = any(number in _FULL for number in execution.error_numbers) or any("space" in text for text in execution.errors)
    if full and scratch is not None and execution.held[1] >= _NOTICEABLE_BYTES and _same_disk(scratch.path, evidence):
        # The scratch goes first: a record can only be written now if that made room.
        scratch.remove()
        return "the disk was full until the trial's own files were deleted"
    return None


def read_regular(path: str, max_bytes: int = _MAX_FILE_BYTES) -> bytes | None:
    """The content of a captured file; ``None`` when something else is in its place (reading a FIFO would never end), or more than ``max_bytes``."""
    try:
        return read_file(path, max_bytes=max_bytes)
    except (OSError, ValueError):
        return None


def is_content(path: str, sha256: str) -> bool:
    """Whether a file has the digest ``sha256``, for one that is too large to be held."""
    try:
        return os.lstat(path).st_size <= _MAX_FILE_BYTES and sha256_file(path) == sha256
    except (OSError, ValueError):
        return False


def _same_disk(path: str, other: str) -> bool:
    try:
        return os.stat(path).st_dev == os.stat(other).st_dev
    except OSError:
        return False
