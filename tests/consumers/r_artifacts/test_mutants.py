"""Every mutant fails the checks that are meant for it, and no others; each with true digests unless integrity is its subject."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from tests.consumers.r_artifacts.artifact_set import ArtifactSet
from tests.consumers.r_artifacts.form_mutants import FormMutant, apply
from tests.consumers.r_artifacts.model_mutants import ALL_MUTANTS
from tests.consumers.r_artifacts.number_mutants import Mutant, made_from
from tests.consumers.r_artifacts.said import failed, report_of, words
from tests.consumers.r_artifacts.value_mutants import ALL_FORM_MUTANTS

CASES = [pytest.param(one, name, id=f"{one.name}-{name}") for one in ALL_MUTANTS for name in one.sets]


def test_there_are_many_mutants_with_names_of_their_own() -> None:
    names = [one.name for one in ALL_MUTANTS] + [one.name for one in ALL_FORM_MUTANTS]
    assert len(names) == len(set(names)) > 150


@pytest.mark.parametrize(("one", "name"), CASES)
def test_numbers(one: Mutant, name: str, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    report = report_of(made_from(sets[name], one).write(tmp_path / "artifacts"))
    assert report["passed"] is False
    assert one.fails <= failed(report) <= one.fails | one.may
    assert one.contains in words(report)


@pytest.mark.parametrize("one", [pytest.param(one, id=one.name) for one in ALL_FORM_MUTANTS])
def test_form(one: FormMutant, sets: dict[str, ArtifactSet], tmp_path: Path) -> None:
    made = copy.deepcopy(sets["paired"])
    folder = made.write(tmp_path / "artifacts")
    apply(one, folder, made)
    report = report_of(folder)
    assert report["passed"] is False
    assert failed(report) == one.fails
    for said in one.says:
        assert said in words(report)
