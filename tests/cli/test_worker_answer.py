"""What a worker's supervisor sends back, and what its worker makes of it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import types
from dataclasses import replace

import pytest

from agent_eval.cli import worker
from agent_eval.evidence.files import Files
from agent_eval.evidence.writer import TrialFolder
from agent_eval.trials import remote_call
from agent_eval.trials.execution import Execution
from agent_eval.trials.remote_call import RemoteTrial, frame, run_remote

TRIAL = RemoteTrial(("check", "--case", "nowhere"), "/", None, "0" * 64, "case", 1, "mark", 20.0, 1000, "nonce")


@pytest.fixture
def trial(tmp_path) -> types.SimpleNamespace:
    os.mkdir(tmp_path / "trial")
    return types.SimpleNamespace(folder=TrialFolder(str(tmp_path / "trial"), "case", 1, Files()), execution=Execution())


def test_captured_files_are_sent_within_their_bound(trial, capsysbinary):
    digests = {name: trial.folder.write(name, data) for name, data in (("a", b"x" * 600), ("files/b", b"y" * 400))}
    assert worker._send_captured(trial, 1000) == digests
    sys.stdout.flush()
    assert capsysbinary.readouterr().out == b"".join(piece for data in (b"a", b"x" * 600, b"files/b", b"y" * 400) for piece in frame(data))
    assert trial.execution.tampered is None


@pytest.mark.parametrize("sizes", [(600, 401), (1001,), (0, 5000)])
def test_more_than_the_bound_is_refused_and_not_laid_to_the_subject(trial, capsysbinary, sizes):
    for index, size in enumerate(sizes):
        trial.folder.write(f"file{index}", b"x" * size)
    with pytest.raises(worker._Refusal, match=r"have \d+ bytes together, more than the 1000 that the limits allow"):
        worker._send_captured(trial, 1000)
    assert trial.execution.tampered is None


def test_a_file_that_grew_is_the_subjects_doing(trial, capsysbinary):
    """However large it is now: otherwise a failure could be made void."""
    trial.folder.write("a", b"x")
    digest = trial.folder.write("b", b"y")
    os.truncate(os.path.join(trial.folder.path, "a"), 1 << 40)
    assert worker._send_captured(trial, 1000) == {"b": digest}
    assert trial.execution.tampered == "a was changed after it was captured"


@pytest.fixture
def supervisor(monkeypatch, tmp_path):
    """Puts a program in the supervisor's place."""

    def put(text: str) -> None:
        path = tmp_path / "supervisor.py"
        path.write_text(f"import os, sys, time\nsys.stdin.read()\nout = sys.stdout.buffer\n{text}")
        monkeypatch.setattr(remote_call, "_RUN_PY", str(path))

    return put


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "ended without an answer"),
        ("sys.exit('error: no room')", "error: no room"),
        ("out.write(bytes(3))", "ended without an answer"),
        ("out.write((1 << 63).to_bytes(8, 'big'))", "more than the 1000 bytes"),
        ("out.write((1).to_bytes(8, 'big') + b'a' + (500).to_bytes(8, 'big') + bytes(499))", "ended without an answer"),
        ("out.write(bytes(8) + (2).to_bytes(8, 'big') + b'no')", "no"),
        ("out.write(bytes(8)); out.flush(); os.kill(os.getpid(), 9)", "ended without an answer"),
    ],
)
def test_a_supervisor_that_gives_no_answer(supervisor, text, words):
    supervisor(text)
    result = run_remote(TRIAL)
    assert words in (result.refusal or "")
    assert (result.execution, result.files) == (b"", ())


@pytest.mark.parametrize("text", ["time.sleep(60)", "out.write(bytes(12)); out.flush(); time.sleep(60)"])
def test_a_supervisor_that_does_not_answer_in_time(supervisor, text):
    supervisor(text)
    assert run_remote(replace(TRIAL, bound_s=1.5)).refusal == "the worker's supervisor did not end within 1.5 s"


def test_a_supervisor_that_answers_and_does_not_end(supervisor):
    supervisor("out.write(bytes(8) + (2).to_bytes(8, 'big') + b'{}'); out.flush(); time.sleep(60)")
    assert run_remote(replace(TRIAL, bound_s=3.0)) == remote_call.RemoteResult(b"{}")


def test_a_supervisor_with_files_and_an_answer(supervisor):
    supervisor("for data in (b'a', b'x' * 500, b'b', b'', b'', b'{\"answer\":1}'): out.write(len(data).to_bytes(8, 'big') + data)")
    result = run_remote(TRIAL)
    assert result == remote_call.RemoteResult(b'{"answer":1}', (("a", b"x" * 500), ("b", b"")))


def test_a_refusal_of_the_real_supervisor_is_in_words():
    assert "nowhere" in (run_remote(TRIAL).refusal or "")
    assert "no such consumer" in (run_remote(RemoteTrial(("nothing",), "/", None, "0" * 64, "case", 1, "m", 20.0, 0, "n")).refusal or "")


def test_descriptors_of_the_worker_are_given_back(supervisor):
    supervisor("out.write(bytes(8) + (1).to_bytes(8, 'big') + b'n')")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        run_remote(TRIAL)
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_a_lifeline_that_is_none(tmp_path):
    root = pathlib.Path(__file__).resolve().parents[2]
    request = remote_call._request(TRIAL)
    done = subprocess.run([sys.executable, root / "run.py", "worker", "--lifeline", "77"], input=request, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"error: --lifeline: 77 is no open descriptor; an executor's workers give it\n"
