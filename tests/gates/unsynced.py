"""File operations that skip the disk's own syncing: the rules under test are the same and the tests are fast."""

from __future__ import annotations

from agent_eval.gates.files import Files


class Unsynced(Files):
    """A double at the write seam."""

    def flush(self, descriptor: int) -> None:
        """Leave it to the system."""


FAST = Unsynced()
