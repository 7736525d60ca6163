"""Agents that break things: each way has its own named reason, and the run goes on."""

from __future__ import annotations

import json
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.consumers.core_agent.runs import ROOT, Evidence, judged_again, without_grader

END = "\nemit('final', status='completed', answer='done')"
WRONG = "wrong-file"


@pytest.mark.parametrize(
    ("body", "reasons"),
    [
        pytest.param("sys.exit(3)", ["nonzero-exit", "no-final", WRONG], id="exits without a word"),
        pytest.param("emit('start'); emit('final', status='completed', answer='')\nsys.exit(1)", ["nonzero-exit", WRONG], id="final and a bad exit"),
        pytest.param("os.kill(os.getpid(), 9)", ["signalled", "no-final", WRONG], id="kills itself"),
        pytest.param("emit('start')" + END + END, ["several-finals", WRONG], id="two finals"),
        pytest.param("emit('start')" + END + "\nemit('message', text='and')", ["event-after-final", WRONG], id="goes on after the final"),
        pytest.param("emit('tool_result', id='1', ok=True, output='')" + END, ["result-without-call", WRONG], id="result before call"),
        pytest.param("print('not an event')\nprint('{')\nemit('start')" + END, [WRONG], id="chatter beside events"),
        pytest.param("sys.stdout.buffer.write(b'\\xff\\x00\\n' * 1000); sys.stdout.flush()" + END, [WRONG], id="bytes beside events"),
        pytest.param("emit('start')\nos.makedirs('/'.join('d' * 70))" + END, ["workspace-limit", "change-outside-allowed", "unreported-change"], id="deep tree"),
        pytest.param("emit('start')\nopen('big', 'wb').truncate(3 << 30)" + END, ["workspace-limit"], id="sparse giant"),
        pytest.param("emit('start')\nos.mkfifo('fifo')" + END, ["change-outside-allowed", "unreported-change"], id="fifo"),
        pytest.param("emit('start')\nos.symlink('/etc', 'etc')" + END, ["change-outside-allowed", "unreported-change"], id="link out"),
        pytest.param("emit('start')\nopen(b'\\xff', 'w').close()" + END, ["change-outside-allowed", "unreported-change"], id="name that is not UTF-8"),
        pytest.param("emit('start')\nos.mkdir('x'); os.chmod('x', 0)" + END, ["change-outside-allowed", "unreported-change"], id="closed folder"),
        pytest.param("emit('start')\nimport shutil; shutil.rmtree(workspace)" + END, ["change-outside-allowed", "ungranted-effect", "unreported-change"], id="removes the workspace"),
        pytest.param("import shutil; shutil.rmtree(os.path.dirname(workspace), True)" + END, ["change-outside-allowed", "ungranted-effect", "unreported-change"], id="removes all its folders"),
    ],
)
def test_reasons(run_agent: Callable[..., Evidence], write_program: Callable, body: str, reasons: list[str]) -> None:
    run = run_agent(write_program(body), "--case", "write")
    assert run.code == 1
    found = run.reasons()["write"]
    assert [reason for reason in reasons if reason not in found] == []
    assert judged_again(run.path) == without_grader(run.judgments())
    if reasons[-1] == WRONG:
        assert found == reasons


def test_a_workspace_of_too_many_files(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    body = "emit('start')\nfor n in range(20_050): os.close(os.open(str(n), os.O_CREAT | os.O_WRONLY))" + END
    run = run_agent(write_program(body), "--case", "write")
    assert "workspace-limit" in run.reasons()["write"]
    assert json.loads(run.file("write@1", "workspace-after.json"))["limit"] == "entries"


def test_a_flood_of_output_is_cut_at_the_cap(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    run = run_agent(write_program("while True: emit('message', text='x' * 1000)"), "--case", "write", "--max-output-bytes", "64KiB")
    assert run.reasons()["write"] == ["output-limit", "no-final", WRONG]
    assert len(run.file("write@1", "events.jsonl")) == 65536


def test_a_timeout_keeps_what_was_said(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    body = "emit('start')\nimport signal\nsignal.signal(15, lambda *_: emit('message', text='stopping'))\nwhile True: time.sleep(9)"
    begun = time.monotonic()
    run = run_agent(write_program(body), "--case", "write", "--timeout", "0.5", "--grace", "0.3")
    assert time.monotonic() - begun < 20
    assert run.reasons()["write"] == ["timeout", "no-final", WRONG]
    assert b"stopping" in run.file("write@1", "events.jsonl")


def test_what_it_leaves_running_is_ended_before_the_look(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    body = (
        "emit('start'); emit('final', status='completed', answer='')\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    for n in range(200):\n"
        "        time.sleep(0.1)\n"
        "        open('late', 'a').write('x')\n"
    )
    run = run_agent(write_program(body), "--case", "write")
    assert run.record("write@1")["outcome"]["tree"]["killed"] >= 1
    assert run.reasons()["write"][-1] in (WRONG, "unreported-change")


def test_an_interrupted_trial_is_void(tmp_path: pathlib.Path, write_program: Callable) -> None:
    program = write_program(f"open({str(tmp_path)!r} + '/running', 'w').close()\ntime.sleep(60)")
    argv = [sys.executable, str(ROOT / "run.py"), "core-agent", "--binary", str(program), "--case", "repair", "--trials", "3", "-q", "-o", str(tmp_path / "e")]
    harness = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (tmp_path / "running").exists():
        assert harness.poll() is None, harness.communicate()[1]
        time.sleep(0.02)
    harness.send_signal(signal.SIGINT)
    harness.communicate(timeout=30)
    assert harness.returncode == 130
    summary = json.loads((tmp_path / "e" / "summary.json").read_bytes())
    assert (summary["planned"], summary["interrupted"], summary["unrun"]) == (3, 1, 2)


def test_removing_the_folder_for_temporary_files_escapes_no_check(run_agent: Callable[..., Evidence], write_program: Callable, tmp_path: pathlib.Path) -> None:
    (tmp_path / "tmp").mkdir()
    body = "emit('start')" + END + "\nimport shutil\nos.chdir('/')\nshutil.rmtree(os.path.dirname(os.path.dirname(workspace)))"
    run = run_agent(write_program(body), "--case", "repair", env={"TMPDIR": str(tmp_path / "tmp")})
    assert "hidden-check-failed" in run.reasons()["repair"]
    assert run.summary["failed"] == 1


def test_a_checker_that_is_kept_busy_fails_the_subject(run_agent: Callable[..., Evidence], write_program: Callable) -> None:
    """The module under the hidden checker forks, floods and never returns: fail, never void, never a hang."""
    body = (
        "name = 'src/' + os.listdir('src')[0]\n"
        "text = 'import os, sys\\nos.fork()\\nos.setsid() if os.fork() == 0 else None\\nwhile True: sys.stdout.write(\"x\" * 65536)\\n'\n"
        "open(name, 'w').write(text)\n"
        "emit('start'); emit('tool_call', id='1', tool='write', arguments={'path': name, 'content': text})\n"
        "emit('tool_result', id='1', ok=True, output='')" + END
    )
    run = run_agent(write_program(body), "--case", "repair")
    assert run.reasons()["repair"] == ["hidden-check-failed"]
    assert run.record("repair@1")["hidden_check"]["probe_outcome"]["stop_reason"] == "output-limit"
