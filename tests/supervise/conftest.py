"""Fixtures for hostile programs. Every test that uses ``lab`` ends with the check that nobody of it is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervise.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab in the test's own folder."""
    lab = Lab(tmp_path)
    try:
        yield lab
        assert lab.survivors() == set()
        assert lab.slot.fault is None
    finally:
        lab.slot.close()
