"""Programs that leave something else than a plain report. Usage: reports.py KIND PATH [BYTES]."""

import os
import socket
import stat
import sys


def plain(path, size):
    with open(path, "wb") as file:
        file.write(b"x" * size)


def symbolic_link(path, _):
    os.symlink("/etc/passwd", path)


def dangling_link(path, _):
    os.symlink("/nonexistent/nowhere", path)


def link_loop(path, _):
    os.symlink(path, path)


def fifo(path, _):
    os.mkfifo(path)


def directory(path, _):
    os.mkdir(path)


def unix_socket(path, _):
    os.chdir(os.path.dirname(path))
    socket.socket(socket.AF_UNIX).bind(os.path.basename(path))


def device(path, _):
    os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 5))


def hard_link(path, _):
    with open(path + ".other", "w") as file:
        file.write("{}")
    os.link(path + ".other", path)


def sparse(path, _):
    with open(path, "w") as file:
        os.truncate(file.fileno(), 10 << 30)


def without_permission(path, _):
    plain(path, 2)
    os.chmod(path, 0)


def deleted(path, _):
    plain(path, 2)
    os.unlink(path)


def empty(path, _):
    plain(path, 0)


def growing(path, _):
    """A daemon that never stops writing: gone before the file is looked at."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with open(path, "w", buffering=1) as file:
            while True:
                file.write("x" * 4096)
    while not os.path.exists(path):
        pass


def swapped_folder(path, _):
    """The report's folder is moved away and replaced by a link to another one with a report in it."""
    folder = os.path.dirname(path)
    os.rename(folder, folder + ".moved")
    os.mkdir(folder + ".fake")
    plain(folder + ".fake/" + os.path.basename(path), 2)
    os.symlink(folder + ".fake", folder)


if __name__ == "__main__":
    globals()[sys.argv[1]](sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0)
