"""A git revision as a tree of files, to compare a working tree with.

Owns the git commands that are run (``rev-parse``, ``ls-tree``, ``cat-file`` and ``check-ignore``), all of which read
objects and ignore rules only. Contents are compared by blob id computed here from the bytes on
disk, so that neither the index nor a filter of the repository's configuration has a say, and replacement objects
(``refs/replace``, which a subject can write too) are not followed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess

from agent_eval import InvalidInput

from . import trees

_GIT_TIMEOUT_S = 60
_LINK = "120000"
_SUBMODULE = "160000"
_FOLDER = "040000"


def changed_since(repository: str, revision: str) -> dict[str, list[str]]:
    """Files added, removed and changed in the working tree since ``revision``.

    Untracked files count as added unless a ``.gitignore`` that is itself unchanged since ``revision`` ignores
    them. Raises ``InvalidInput`` when git is not there, or the repository or revision is not.
    """
    answer = _git(repository, "rev-parse", "--show-toplevel", wrong=("--git", f"{repository} is not a git repository"))
    root = answer.decode("utf-8", "surrogateescape").rstrip("\n")
    if os.path.realpath(root) != os.path.realpath(repository):
        raise InvalidInput.one("--git", f"{repository} is inside a repository and not its root", f"give {trees.readable(root)}")
    wrong = ("--base", f"{revision} is not a revision of {repository}")
    commit = _git(repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}", wrong=wrong).decode("ascii").strip()
    base = _base_tree(repository, commit)
    now = trees.list_tree(repository, "--git")
    submodules = tuple(path + "/" for path, (mode, _) in base.items() if mode == _SUBMODULE)
    now = {path: value for path, value in now.items() if not path.startswith(submodules)} if submodules else now
    base = {path: entry for path, entry in base.items() if entry[0] != _SUBMODULE}
    changed = [path for path in base.keys() & now.keys() if not _is_blob(repository, path, *base[path])]
    added = sorted(now.keys() - base.keys())
    removed = sorted(base.keys() - now.keys())
    untouched_rules = {path for path in base if path.rpartition("/")[2] == ".gitignore"} - set(changed) - set(removed)
    ignored = _ignored(repository, added, untouched_rules)
    return {"added": [path for path in added if path not in ignored], "removed": removed, "changed": sorted(changed)}


def _base_tree(repository: str, commit: str) -> dict[str, tuple[str, str]]:
    listing = _git(repository, "ls-tree", "-r", "-t", "-z", "--full-tree", commit)
    tree: dict[str, tuple[str, str]] = {}
    folders = [commit, _git(repository, "rev-parse", "--verify", f"{commit}^{{tree}}").decode("ascii").strip()]
    for line in listing.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            mode, _, object_id = facts.decode("ascii").split(" ")
            if mode == _FOLDER:
                folders.append(object_id)
            else:
                tree[name.decode("utf-8", "backslashreplace")] = (mode, object_id)
    _require_own_digests(repository, folders)
    return tree


def _require_own_digests(repository: str, object_ids: list[str]) -> None:
    """Git lists a tree without hashing it: a tree object that was written over would put later files into the base."""
    answer = _git(repository, "cat-file", "--batch", data="".join(f"{object_id}\n" for object_id in object_ids).encode("ascii"))
    at = 0
    for object_id in object_ids:
        end = answer.index(b"\n", at)
        _, kind, size_bytes = answer[at:end].split(b" ")
        content = answer[end + 1 : end + 1 + int(size_bytes)]
        if _object_id(kind, content, object_id) != object_id:
            what = f"object {object_id} of the base does not have the digest that names it"
            raise InvalidInput.one("--git", what, "the repository was tampered with; compare two folders with --before and --after")
        at = end + 2 + len(content)


def _is_blob(repository: str, path: str, mode: str, object_id: str) -> bool:
    full = os.path.join(repository, path)
    if os.path.islink(full):
        return mode == _LINK and _object_id(b"blob", os.fsencode(os.readlink(full)), object_id) == object_id
    if mode == _LINK or not os.path.isfile(full) or bool(os.lstat(full).st_mode & 0o100) != (mode == "100755"):
        return False
    with open(full, "rb") as stream:
        return _object_id(b"blob", stream.read(), object_id) == object_id


def _object_id(kind: bytes, data: bytes, like: str) -> str:
    """The id that git gives to an object, by the hash function whose length ``like`` has."""
    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(kind + b" %d\0" % len(data) + data).hexdigest()


def _ignored(repository: str, paths: list[str], rules: set[str]) -> set[str]:
    """Which untracked files a trusted rule ignores. Rules in ``.git/info`` or in a home folder are not trusted."""
    if not paths or not rules:
        return set()
    data = b"\0".join(path.encode("utf-8") for path in paths)
    answer = _git(repository, "check-ignore", "-z", "-v", "--no-index", "--stdin", data=data, codes=(0, 1))
    fields = answer.split(b"\0")
    found = set()
    for source, _, pattern, path in zip(*(iter(fields[:-1]),) * 4, strict=False):
        if not pattern.startswith(b"!") and source.decode("utf-8", "replace") in rules:
            found.add(path.decode("utf-8", "replace"))
    return found


def _git(repository: str, *arguments: str, data: bytes = b"", codes: tuple[int, ...] = (0,), wrong: tuple[str, str] | None = None) -> bytes:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    command = ["git", "-C", repository, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", *arguments]
    try:
        result = subprocess.run(command, input=data, capture_output=True, env=environment, timeout=_GIT_TIMEOUT_S, check=False)
    except FileNotFoundError:
        raise InvalidInput.one("--git", "git is not installed", "give two trees with --before and --after") from None
    except subprocess.TimeoutExpired:
        raise InvalidInput.one("--git", f"git {arguments[0]} took more than {_GIT_TIMEOUT_S} s") from None
    if result.returncode not in codes:
        text = result.stderr.decode("utf-8", "replace").strip().splitlines()
        where, what = wrong or ("--git", f"git {arguments[0]} failed")
        raise InvalidInput.one(where, f"{what} ({text[0]})" if text else what)
    return result.stdout
