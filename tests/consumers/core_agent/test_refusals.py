"""What is refused before anything runs: exit code 2, one clear line a problem."""

from __future__ import annotations

import argparse
import json
import os
import pathlib
from collections.abc import Callable

import pytest

from agent_eval import InvalidInput
from consumers.core_agent import subject
from consumers.core_agent.contract import read_contract
from tests.consumers.core_agent.runs import FIXTURE, REFERENCE

GOOD = {
    "contract": "core-agent/1",
    "name": "x",
    "version": "1",
    "tools": ["read"],
    "transports": ["binary"],
    "model": {"required": False, "env": []},
    "subject_kind": "scripted",
}


def refused(done: object) -> list[str]:
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert done.stdout == ""
    lines = done.stderr.strip().splitlines()
    assert lines and all(line.startswith("error: ") for line in lines)
    assert "Traceback" not in done.stderr
    return lines


def program(path: pathlib.Path, text: str, mode: int = 0o755) -> pathlib.Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("#!/bin/sh\necho hello\n", "not one JSON object"),
        ("#!/bin/sh\necho '[]'\n", "not one JSON object"),
        ("#!/bin/sh\necho '{}'\n", "contract must be"),
        ("#!/bin/sh\ncat <<X\n" + json.dumps(GOOD) + "\n" + json.dumps(GOOD) + "\nX\n", "not one JSON object"),
        ("#!/bin/sh\necho sorry >&2; exit 3\n", "exit code 3 (sorry)"),
        ("#!/bin/sh\nkill -9 $$\n", "signal 9"),
        ("#!/bin/sh\nyes\n", "more than 65536 bytes"),
        ("#!/no/such/interpreter\n", "cannot be started"),
        ("", "cannot be started"),
    ],
)
def test_an_agent_that_answers_nonsense(tmp_path: pathlib.Path, text: str, word: str) -> None:
    path = program(tmp_path / "agent", text)
    with pytest.raises(InvalidInput) as caught:
        subject.probe(str(path), ())
    (problem,) = caught.value.problems
    assert word in problem.what and problem.where == str(path)
    if "sorry" not in text:
        # Beside a real agent's library nothing is known of a fixture that answers no contract.
        assert "cannot be started" in problem.what or subject.probe(str(path), (), lenient=True) is None


def test_nonsense_is_one_line_and_leaves_nothing(run_py: Callable, tmp_path: pathlib.Path) -> None:
    path = program(tmp_path / "agent", "#!/bin/sh\necho hello\n")
    (line,) = refused(run_py("core-agent", "--binary", path))
    assert "answered nonsense" in line and "CONTRACT.md" in line
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("contract", "core-agent/2"),
        ("name", ""),
        ("version", 1),
        ("tools", ["read", "fly"]),
        ("tools", []),
        ("transports", "binary"),
        ("model", {"required": "no", "env": []}),
        ("model", {"required": False, "env": ["A=B"]}),
        ("model", None),
        ("subject_kind", "human"),
        ("identity_files", ["relative"]),
    ],
)
def test_a_contract_with_a_wrong_field(field: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"{field} must be"):
        read_contract(json.dumps({**GOOD, field: value}).encode())


def test_a_contract_with_more_fields_is_taken() -> None:
    contract = read_contract(json.dumps({**GOOD, "homepage": "x"}).encode())
    assert (contract.name, contract.document["homepage"]) == ("x", "x")


def test_a_program_that_cannot_be_one(run_py: Callable, tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    plain = program(tmp_path / "plain", "#!/bin/sh\n", 0o644)
    for path, word in ((plain, "is not executable"), (tmp_path, "is not a regular file"), (tmp_path / "link", "leads nowhere")):
        with pytest.raises(InvalidInput, match=word):
            subject.find_subject(argparse.Namespace(transport="binary", binary=str(path), fixture_binary=None, pass_env=[]), {})
    (line,) = refused(run_py("core-agent", "--binary", tmp_path / "none"))
    assert "does not exist" in line


def test_an_agent_that_does_not_answer_in_time(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "PROBE_TIMEOUT_S", 0.3)
    path = program(tmp_path / "slow", "#!/bin/sh\nsleep 60 & wait\n")
    with pytest.raises(InvalidInput, match=r"did not answer within 0\.3 s"):
        subject.probe(str(path), ())


def test_selection(run_py: Callable, tmp_path: pathlib.Path) -> None:
    nothing = {"PATH": "/usr/bin:/bin", "RHO_EVAL_CORE_BINARY": ""}
    (line,) = refused(run_py("core-agent", env=nothing))
    assert "RHO_EVAL_CORE_BINARY" in line and "core-agent" in line and "rho-core" in line
    (tmp_path / "bin").mkdir()
    search = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    (tmp_path / "bin" / "rho-core").symlink_to(REFERENCE)
    done = run_py("core-agent", "--dry-run", env={**nothing, "PATH": search})
    assert "(rho-core on PATH)" in done.stdout
    (tmp_path / "bin" / "core-agent").symlink_to(REFERENCE)
    assert "(core-agent on PATH)" in run_py("core-agent", "--dry-run", env={**nothing, "PATH": search}).stdout
    by_variable = {"PATH": search, "RHO_EVAL_CORE_BINARY": str(REFERENCE)}
    assert "(RHO_EVAL_CORE_BINARY)" in run_py("core-agent", "--dry-run", env=by_variable).stdout
    assert "(--binary)" in run_py("core-agent", "--dry-run", "--binary", REFERENCE, env=by_variable).stdout


def test_transports_do_not_mix(run_py: Callable) -> None:
    for args, word in (
        (("--transport", "fixture"), "--fixture-binary"),
        (("--fixture-binary", FIXTURE), "--transport fixture"),
        (("--transport", "fixture", "--fixture-binary", FIXTURE, "--binary", REFERENCE), "--binary"),
        (("--transport", "fixture", "--fixture-binary", REFERENCE), "does not offer the transport 'fixture'"),
        (("--binary", FIXTURE), "does not offer the transport 'binary'"),
    ):
        lines = refused(run_py("core-agent", *args))
        assert len(lines) == 1 and word in lines[0]


def test_every_wrong_option_at_once(run_py: Callable) -> None:
    args = ("--variants", "21", "--seed", "x", "--case", "edti", "--case", "read@0", "--trials", "21", "--timeout", "86401", "--pass-env", "A=B", "--max-output-bytes", "1")
    text = "\n".join(refused(run_py("core-agent", "--binary", REFERENCE, *args)))
    for word in ("--variants", "--seed", "did you mean edit?", "'0' is no variant", "1 to 20", "86400", "--pass-env", "1KiB"):
        assert word in text
    assert "--baseline" in refused(run_py("core-agent", "--binary", REFERENCE, "--baseline", "--case", "edit"))[0]


def test_model_prerequisites(run_py: Callable, write_program: Callable, tmp_path: pathlib.Path) -> None:
    agent = write_program("", contract={"model": {"required": True, "env": ["AGENT_MODEL_KEY", "AGENT_MODEL_URL"]}, "subject_kind": "model"})
    unset = refused(run_py("core-agent", "--binary", agent))
    assert len(unset) == 2 and all("is not set" in line for line in unset)
    both = {"AGENT_MODEL_KEY": "rarely-seen", "AGENT_MODEL_URL": "x"}
    unpassed = refused(run_py("core-agent", "--binary", agent, env=both))
    assert len(unpassed) == 2 and all("--pass-env" in line for line in unpassed)
    assert "rarely-seen" not in "".join(unpassed)
    words = ("--pass-env", "AGENT_MODEL_KEY", "--pass-env", "AGENT_MODEL_URL", "--dry-run")
    assert run_py("core-agent", "--binary", agent, *words, env=both).returncode == 0
    assert not (tmp_path / "target").exists()


def test_no_place_to_work_in(run_py: Callable) -> None:
    (line,) = refused(run_py("core-agent", "--binary", REFERENCE, env={"TMPDIR": "/no/such/folder"}))
    assert "TMPDIR" in line
