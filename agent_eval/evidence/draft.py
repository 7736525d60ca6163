"""A new evidence directory that appears under its name only when it is whole.

Owns the hidden folder beside the name, its removal when the work ends otherwise, and the last rename. For
directories that are made from evidence: what was made of it so far is worth nothing. A run's own
directory has its name from the start, so that what finished before a crash can be found.
"""

from __future__ import annotations

import os

from agent_eval.evidence.files import Files
from agent_eval.evidence.location import new_names
from agent_eval.evidence.writer import EvidenceWriter
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem


class Draft:
    """``with Draft(path) as draft``: write through ``draft.writer``, seal, then :meth:`publish`.

    Leaving the block without having published removes everything. After ``kill -9`` a folder ``.draft-...`` stays.
    """

    def __init__(self, path: str | None, files: Files | None = None) -> None:
        """Make the hidden folder where ``path``, or the next free default name, will be. Raises ``InvalidInput`` when that cannot be."""
        self._files = files or Files()
        self._names = new_names(path)
        self._fixed = path is not None
        self.path = os.path.abspath(self._next_name())
        if os.path.lexists(self.path):
            raise _exists(self.path)
        hidden = os.path.join(os.path.dirname(self.path), f".draft-{os.urandom(6).hex()}")
        try:
            self.writer = EvidenceWriter.create(hidden, files)
        except InvalidInput as error:
            raise InvalidInput([Problem(self.path, problem.what, problem.fix) for problem in error.problems]) from None
        self._published = False

    def _next_name(self) -> str:
        for name in self._names:
            return name
        raise InvalidInput.one(self.path, "no free name is left", "name a new directory with --output")

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self.writer.close()
        if self._published:
            return
        # Imported here because commands that write nothing need not pay for it.
        import shutil

        shutil.rmtree(self.writer.path, ignore_errors=True)
        if isinstance(error, EvidenceFault):
            raise EvidenceFault([self._told(problem) for problem in error.problems]) from None

    def _told(self, problem: Problem) -> Problem:
        """A problem of the hidden folder in terms of the name that a person knows."""
        where = self.path if problem.where == self.writer.path else problem.where
        return Problem(where, problem.what, "nothing was kept" if "unsealed" in problem.fix else problem.fix)

    def publish(self) -> None:
        """Put the sealed directory under its name, durably. Raises ``InvalidInput`` when somebody took the name meanwhile, ``OSError`` when it cannot be."""
        while True:
            try:
                # A name that is taken is never replaced: rename() would put an empty directory of somebody else's away.
                self._files.make_directory(self.path)
                break
            except FileExistsError:
                if self._fixed:
                    raise _exists(self.path) from None
                self.path = os.path.abspath(self._next_name())
        try:
            self._files.rename(self.writer.path, self.path)
        except OSError:
            os.rmdir(self.path)
            raise
        self._published = True
        self._files.sync_file(os.path.dirname(self.path))


def _exists(path: str) -> InvalidInput:
    return InvalidInput([Problem(path, "exists already", "name a new directory: evidence is never overwritten")])
