"""Before and after: what a regrade, recheck or comparison found different, and why.

Owns showing ``changes.json`` and ``comparison.json``. It computes no statistics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_eval.report.markup import Markup

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader


def changes_section(reader: EvidenceReader) -> Markup:
    """The before and after table of a directory that has one; nothing otherwise."""
    return Markup("")
