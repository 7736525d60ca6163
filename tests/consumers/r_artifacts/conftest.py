"""The simulated sets, made once per run of the tests, and what a verification said."""

from __future__ import annotations

import pytest

from tests.consumers.r_artifacts import simulated
from tests.consumers.r_artifacts.artifact_set import ArtifactSet


@pytest.fixture(scope="session")
def sets() -> dict[str, ArtifactSet]:
    """By name; copies are changed, never these."""
    return {"paired": simulated.paired(), "two_groups": simulated.two_groups()}
