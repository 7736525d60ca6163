"""One commit of declared files in the git repository that holds them, on request.

Owns calling ``git`` with a time limit, refusing a dirty path, and committing exactly the declared files. It adds
no remote, no hook and no other path.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from agent_eval.records.problems import InvalidInput

GIT_TIMEOUT_S = 60.0


class Repository:
    """The work tree that holds a folder."""

    __slots__ = ("_folder",)

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._git("rev-parse", "--show-toplevel")

    def require_clean(self, paths: Sequence[str]) -> None:
        """Raise InvalidInput naming every declared file with changes that are not committed, or that is not tracked."""
        dirty = self._git("status", "--porcelain", "--untracked-files=all", "--ignored", "-z", "--", *paths)
        if dirty:
            names = ", ".join(part for part in dirty.split("\0") if part)
            raise InvalidInput.one(self._folder, f"git reports changes in declared files: {names}", "commit them first")
        if self._git("diff", "--cached", "--name-only", "-z", "--", *paths):
            raise InvalidInput.one(self._folder, "a declared file has staged changes", "commit them first")

    def commit(self, paths: Sequence[str], message: str) -> str | None:
        """Commit exactly ``paths``, whatever else is staged. Returns the commit, ``None`` when nothing changed."""
        if not self._git("status", "--porcelain", "-z", "--", *paths):
            return None
        self._git("commit", "--quiet", "--only", "-m", message, "--", *paths)
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        import subprocess

        # GIT_DIR and its kin, set by a hook that called us, would point at another repository.
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(("GIT_AUTHOR", "GIT_COMMITTER", "GIT_CONFIG"))
        }
        command = ["git", "--literal-pathspecs", "-C", self._folder, *arguments]
        try:
            done = subprocess.run(command, capture_output=True, env=environment, stdin=subprocess.DEVNULL, timeout=GIT_TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InvalidInput.one("--git", f"git could not be run: {error}") from None
        if done.returncode != 0:
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise InvalidInput.one("--git", f"git {arguments[0]} failed: {lines[-1]}")
        return done.stdout.decode("utf-8", "surrogateescape")
