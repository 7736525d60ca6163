"""A directory that appears under its name only when it is whole."""

from __future__ import annotations

import os
import pathlib

import pytest

from agent_eval.evidence.draft import Draft
from agent_eval.evidence.manifest import verify
from agent_eval.evidence.plan_file import make_plan
from agent_eval.records.problems import EvidenceFault, InvalidInput
from tests.evidence.conftest import EVALUATOR


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> pathlib.Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sealed(draft: Draft, planned) -> str:
    draft.writer.write_plan(make_plan("check", planned, ("check",), EVALUATOR), ((case.id, case.data) for case in planned.cases))
    return draft.writer.seal({"passed": 0})


def test_it_appears_when_it_is_published(here, planned) -> None:
    with Draft("new") as draft:
        seal = sealed(draft, planned)
        assert not os.path.lexists("new")
        draft.publish()
        assert draft.path == str(here / "new")
    assert os.listdir(here) == ["new"]
    assert oct((here / "new").stat().st_mode & 0o777) == "0o700"
    assert verify("new", seal).ok


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_it_is_gone_when_the_work_ended_otherwise(here, planned, error: type[BaseException]) -> None:
    with pytest.raises(error), Draft("new") as draft:
        sealed(draft, planned)
        raise error
    with Draft("new") as draft:
        sealed(draft, planned)
    assert os.listdir(here) == []


def test_a_fault_is_told_by_the_name_that_a_person_knows(here, planned) -> None:
    with pytest.raises(EvidenceFault) as caught, Draft("new") as draft:
        sealed(draft, planned)
        raise EvidenceFault.one(draft.writer.path, "could not be sealed", "the directory is left unsealed")
    assert str(caught.value) == f"{here}/new: could not be sealed; nothing was kept"


@pytest.mark.parametrize("taken", [os.mkdir, lambda path: pathlib.Path(path).write_text("x"), lambda path: os.symlink("nowhere", path)])
def test_a_name_that_somebody_took_meanwhile_is_left_to_them(here, planned, taken) -> None:
    with pytest.raises(InvalidInput, match="new: exists already"), Draft("new") as draft:
        sealed(draft, planned)
        taken("new")
        draft.publish()
    assert os.listdir(here) == ["new"]
    assert not os.path.isdir("new") or not os.listdir("new")
    with pytest.raises(InvalidInput, match="new: exists already"):
        Draft("new")


def test_a_default_name_that_was_taken_meanwhile_becomes_the_next(here, planned) -> None:
    with Draft(None) as draft:
        first = draft.path
        os.mkdir(first)
        seal = sealed(draft, planned)
        draft.publish()
    assert draft.path == f"{first}-2"
    assert verify(draft.path, seal).ok
    assert sorted(os.listdir(os.path.dirname(first))) == sorted(map(os.path.basename, (first, draft.path)))


@pytest.mark.parametrize("path", ["nowhere/new", "file/new", "evidence/new", "evidence/trials/new", "link/new"])
def test_where_it_cannot_be(here, planned, write_run, path: str) -> None:
    write_run("evidence").seal({})
    (here / "file").write_text("x")
    (here / "link").symlink_to("evidence")
    before = sorted(map(str, here.rglob("*")))
    with pytest.raises(InvalidInput, match="new: "):
        Draft(path)
    assert sorted(map(str, here.rglob("*"))) == before
