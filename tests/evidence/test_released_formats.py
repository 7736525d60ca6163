"""One directory of every released format stays here for good: it verifies and is judged again, unchanged.

``formats/<version>/<consumer>`` was written by the release that introduced the format. Nothing in it is ever
edited; a new format adds a folder.
"""

from __future__ import annotations

import json
import pathlib
import shutil

import pytest

from agent_eval.evidence.layout import FORMAT_VERSION

FORMATS = pathlib.Path(__file__).resolve().parent / "formats"
DIRECTORIES = sorted(path for path in FORMATS.glob("*/*") if path.is_dir())
SEALS = {
    "1/check": "9f387be08eacc7dcc02b0a3fe67c31b60c2ad02a4b9b45f449b833dfddc925da",
    "1/core-agent": "57296982fa54e74d0f44e2c0b32a4b8d2efadeedd0e4af4fe02f4f8f12c7a1b3",
}


def name_of(path: pathlib.Path) -> str:
    return f"{path.parent.name}/{path.name}"


def test_every_format_that_this_version_knows_is_here() -> None:
    assert {int(path.parent.name) for path in DIRECTORIES} == set(range(1, FORMAT_VERSION + 1))
    assert {name_of(path) for path in DIRECTORIES} == set(SEALS)


@pytest.mark.parametrize("directory", DIRECTORIES, ids=name_of)
def test_it_matches_its_seal_and_gives_the_same_verdicts(run_py, tmp_path, directory: pathlib.Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(directory, copy)
    assert run_py("verify", copy, "--seal", SEALS[name_of(directory)]).returncode == 0
    counts = json.loads(run_py("status", copy, "--json").stdout)
    done = run_py("regrade", copy, "--json")
    regraded = json.loads(done.stdout)
    assert regraded["changes"] == {"same": counts["finished"], "changed": 0, "not_assessable": 0}
    assert done.returncode == json.loads((copy / "summary.json").read_text())["exit_code"]
    for command in (["show", copy], ["report", copy, "-o", "page.html"], ["report", copy, "--junit", "junit.xml"]):
        assert run_py(*command).returncode == 0, command
