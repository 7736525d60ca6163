"""A private scratch folder for one trial, outside the evidence, and its removal.

Owns making, measuring and deleting it. What a program leaves there may be hostile (no permissions,
endless nesting, links to elsewhere): nothing outside is ever touched, and depth costs no recursion.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from agent_eval.supervise.scratch_board import NAME_PREFIX, left_by, own_board

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Removal:
    """What a scratch folder held: ``entries`` and their apparent size; ``left`` of them could not be deleted."""

    entries: int = 0
    size_bytes: int = 0
    left: int = 0


class Scratch:
    """A new folder of mode 0700 with an unguessable name; as a context manager it is removed at the end.

    ``base`` is the existing folder to make it in; the default is the harness's TMPDIR, else ``/tmp``.
    Raises ``OSError`` when it cannot be made.
    """

    __slots__ = ("_expected", "_made", "_noted", "path", "seen_empty")

    def __init__(self, base: str | None = None) -> None:
        folder = os.path.abspath(base or os.environ.get("TMPDIR") or "/tmp")
        self.path = f"{folder}/{_new_name()}"
        self._noted = own_board().add(self.path)
        try:
            os.mkdir(self.path, 0o700)
        except OSError:
            self.leave()
            raise
        self._made: list[str] = []
        self._expected: list[str] = []
        self.seen_empty = False
        """Whether the last :meth:`usage` found nothing at all."""

    def rename(self) -> None:
        """Give it another unguessable name in the same place. Raises ``OSError`` when it is not there."""
        path = f"{self.path.rpartition('/')[0]}/{_new_name()}"
        noted = own_board().add(path)
        try:
            os.rename(self.path, path)
        except OSError:
            own_board().drop(noted)
            raise
        self.leave()
        self.path, self._noted = path, noted

    def leave(self) -> None:
        """Let it stay where it is when this process is killed: somebody wants to look at it, or it is gone."""
        own_board().drop(self._noted)
        self._noted = None

    def expect(self, name: str) -> str:
        """The path of a file that a program is asked to write at the top."""
        self._expected.append(name)
        return f"{self.path}/{name}"

    def forget_expected(self) -> tuple[str, ...]:
        """The names of the files that a program was asked to write; the next trial may ask for others."""
        names = tuple(self._expected)
        self._expected.clear()
        return names

    def subfolder(self, name: str) -> str:
        """Make the folder ``name`` (one component) inside, mode 0700; returns its path."""
        path = f"{self.path}/{name}"
        os.mkdir(path, 0o700)
        self._made.append(name)
        return path

    def usage(self) -> tuple[int, int]:
        """How many entries it holds, made subfolders not counted, and the apparent size of its files. Follows no link."""
        try:
            self.seen_empty = not os.listdir(self.path)
        except OSError:
            return 0, 0
        if self.seen_empty:
            return 0, 0
        entries = size_bytes = 0
        own = {f"{self.path}/{name}" for name in self._made}
        queue = [self.path]
        while queue:
            folder = queue.pop()
            try:
                with os.scandir(folder) as found:
                    for entry in found:
                        entries += entry.path not in own
                        if entry.is_dir(follow_symlinks=False):
                            queue.append(entry.path)
                        else:
                            size_bytes += _size(entry)
            except OSError:  # unreadable, or deeper than a path can say: what is below stays uncounted
                continue
        return entries, size_bytes

    def remove(self) -> Removal:
        """Delete everything and count what was there on the way. Raises nothing: ``left`` tells."""
        removal = self._remove()
        self.leave()
        return removal

    def _remove(self) -> Removal:
        try:
            for name in reversed(self._made):
                os.rmdir(f"{self.path}/{name}")
            os.rmdir(self.path)
            return Removal()
        except OSError:  # not empty: the slow way
            pass
        try:
            top = _open_folder(self.path, None)
        except FileNotFoundError:
            return Removal()
        except OSError:  # a link or a file was put in its place: none of ours to delete
            return Removal(left=1)
        try:
            removal = self._empty(top)
        finally:
            os.close(top)
        if not removal.left:
            try:
                os.rmdir(self.path)
            except OSError:  # somebody outside the tree goes on writing
                removal.left = 1
        return removal

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.remove()

    def _empty(self, top: int) -> Removal:
        """Flatten: a subfolder is moved to the top before its parent goes, so depth costs neither paths nor descriptors."""
        removal = Removal(entries=-sum(_exists(name, top) for name in self._made))
        queue: list[str] = []
        _clear(top, top, queue, removal)
        while queue:
            name = queue.pop()
            try:
                folder = _open_folder(name, top)
                try:
                    _clear(folder, top, queue, removal)
                finally:
                    os.close(folder)
                os.rmdir(name, dir_fd=top)
            except FileNotFoundError:  # another guardian of a dead harness was quicker
                continue
            except OSError:  # a mount point, an immutable file below, another user's folder
                removal.left += 1
        return removal


def remove_left_by(harness: int) -> None:
    """Remove what the process ``harness``, which is dead and whose fork this is, had of scratch folders. Raises nothing."""
    for path in left_by(harness):
        scratch = Scratch.__new__(Scratch)
        scratch.path, scratch._made = path, []
        scratch._remove()


def _new_name() -> str:
    return f"{NAME_PREFIX}{os.urandom(9).hex()}"


def _clear(folder: int, top: int, queue: list[str], removal: Removal) -> None:
    """Delete the files of ``folder`` and queue its subfolders, moved to the top."""
    with os.scandir(folder) as found:
        entries = list(found)
    for entry in entries:
        removal.entries += 1
        try:
            if not entry.is_dir(follow_symlinks=False):
                removal.size_bytes += _size(entry)
                os.unlink(entry.name, dir_fd=folder)
            elif folder == top:
                queue.append(entry.name)
            else:
                queue.append(_park(entry.name, folder, top))
        except FileNotFoundError:
            continue
        except OSError:
            removal.left += 1


def _park(name: str, folder: int, top: int) -> str:
    parked = f".parked-{os.urandom(9).hex()}"
    try:
        os.rename(name, parked, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:  # moving a folder writes to it
        _make_usable(name, folder)
        os.rename(name, parked, src_dir_fd=folder, dst_dir_fd=top)
    return parked


def _open_folder(name: str, parent: int | None) -> int:
    """Open the folder ``name`` so that its entries can be deleted; a link is refused."""
    try:
        fd = os.open(name, FOLDER_FLAGS, dir_fd=parent)
    except PermissionError:
        _make_usable(name, parent)
        return os.open(name, FOLDER_FLAGS, dir_fd=parent)
    if stat.S_IMODE(os.fstat(fd).st_mode) & stat.S_IRWXU != stat.S_IRWXU:
        os.fchmod(fd, stat.S_IRWXU)
    return fd


def _make_usable(name: str, parent: int | None) -> None:
    """chmod u+rwx of a folder that may not even be opened, without following a link that took its place."""
    if not hasattr(os, "O_PATH"):
        os.chmod(name, stat.S_IRWXU, dir_fd=parent, follow_symlinks=False)
        return
    fd = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{fd}", stat.S_IRWXU)
    finally:
        os.close(fd)


def _exists(name: str, parent: int) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _size(entry: os.DirEntry) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:
        return 0
