"""Which files decide what a CLI does, and where its package begins.

Owns following a launcher to the program that really runs: the executable of the platform
package beside an npm launcher, or the package tree and the interpreter of a script.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from agent_eval import InvalidInput, digests, identity

from .model import Adapter

MAX_TREE_FILES = 20_000
#: Names every installed dependency with its version and digest: npm's hidden lock file.
_NPM_LOCK = ".package-lock.json"


@dataclass(frozen=True, slots=True)
class Installation:
    """Where a CLI is installed. ``runs`` is the program behind a launcher, or the binary itself."""

    binary: str
    package_root: str
    runs: str
    files: tuple[identity.IdentityFile, ...]
    tree_sha256: str | None
    tree_files: int
    interpreter: str | None


def find_installation(adapter: Adapter, binary: str) -> Installation:
    """Look at an installed CLI. Raises :class:`InvalidInput` when a tree is larger than is looked at."""
    real = os.path.realpath(binary)
    root, packaged = package_root(real)
    packaged = packaged and _is_script(real)
    files = {binary: "program"}
    runs = real
    if not _is_script(real) or adapter.identity.behind:
        for candidate in adapter.identity.behind:
            path = os.path.normpath(os.path.join(root, candidate))
            if path != real and os.path.isfile(path) and _is_script(real):
                files[path] = "runs"
                runs = path
                break
    interpreter = None
    for file in identity.command_files([binary], os.environ.get("PATH", os.defpath), os.getcwd()):
        files.setdefault(file.path, file.role)
        if file.role == "interpreter" and os.path.basename(file.path) != "env":
            interpreter = file.path
    tree = count = None
    if adapter.identity.tree is not None and packaged:
        tree, count = tree_digest(root)
    listed = tuple(identity.IdentityFile(path, role) for path, role in files.items())
    return Installation(binary, root, runs, listed, tree, count or 0, interpreter)


def package_root(real: str) -> tuple[str, bool]:
    """The folder of the package, of the nearest ``package.json`` or of the Python environment's packages, and whether there is one."""
    folder = os.path.dirname(real)
    while folder != os.path.dirname(folder):
        if os.path.isfile(os.path.join(folder, "package.json")):
            return folder, True
        if os.path.isfile(os.path.join(folder, "pyvenv.cfg")):
            return _site_packages(folder) or folder, True
        folder = os.path.dirname(folder)
    return os.path.dirname(real), False


def _site_packages(environment: str) -> str | None:
    lib = os.path.join(environment, "lib")
    names = sorted(os.listdir(lib)) if os.path.isdir(lib) else []
    return next((os.path.join(lib, name, "site-packages") for name in names if name.startswith("python")), None)


def tree_digest(root: str) -> tuple[str, int]:
    """One digest over every file below ``root``; of a Python environment over what its packages' RECORD files state.

    Raises :class:`InvalidInput` for a tree of more than 20,000 files.
    """
    found = hashlib.sha256()
    count = 0
    for relative, path in sorted(_files(root)):
        count += 1
        if count > MAX_TREE_FILES:
            raise InvalidInput.one(root, f"has more than {MAX_TREE_FILES} files", "give the program of an ordinary installation")
        found.update(f"{digests.sha256_file(path)}  {relative}\n".encode("utf-8", "surrogateescape"))
    return found.hexdigest(), count


def _files(root: str) -> Iterator[tuple[str, str]]:
    lock = os.path.join(os.path.dirname(root), _NPM_LOCK)
    if os.path.isfile(lock):
        yield f"../{_NPM_LOCK}", lock
    scoped = os.path.join(os.path.dirname(os.path.dirname(root)), _NPM_LOCK)
    if os.path.isfile(scoped):
        yield f"../../{_NPM_LOCK}", scoped
    if os.path.basename(root) == "site-packages":
        for name in os.listdir(root):
            record = os.path.join(root, name, "RECORD")
            if name.endswith(".dist-info") and os.path.isfile(record):
                yield f"{name}/RECORD", record
        return
    for folder, folders, names in os.walk(root):
        folders.sort()
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield os.path.relpath(path, root), path


def _is_script(path: str) -> bool:
    with open(path, "rb") as file:
        start = file.read(4)
    return start != b"\x7fELF" and start[:4] not in (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def interpreter_command(adapter: Adapter, installation: Installation) -> tuple[str, str] | None:
    """Program and least version of the interpreter that the adapter asks for, when the binary is a script."""
    wanted = adapter.identity.interpreter
    if wanted is None or not _is_script(os.path.realpath(installation.binary)):
        return None
    name, _, least = wanted.partition(">=")
    found = installation.interpreter or shutil.which(name)
    if found is not None and not os.path.basename(found).startswith(name):
        # A wrapper of another kind: what it starts in the end cannot be told from here.
        return None
    if found is None:
        raise InvalidInput.one("--binary", f"needs {wanted}, and there is no {name} on PATH", f"install {name}, or put it first on PATH")
    return found, least


def version_at_least(version: str, least: str) -> bool:
    """Whether a dotted version is at least the other."""
    def parts(text: str) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", text)[:3])

    return parts(version) >= parts(least)
