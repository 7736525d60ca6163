"""Process trees that try to outlive their trial. Each test first sees them alive."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from agent_eval.records.outcome import StopReason

LIMIT_S = 1.0  # the promise: back within timeout + grace + 1 s
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="skipped: the subreaper is Linux's")


@pytest.mark.parametrize(
    ("kind", "leaked", "escaped"),
    [
        ("background", 1, 0),
        ("escaped", 1, 1),
        ("quiet_daemon", 1, 1),
        ("cleared_environment", 1, 1),
        ("own_group", 1, 1),
        ("keeps_writing", 1, 0),
    ],
)
def test_what_a_finished_leader_leaves_behind_is_counted_and_gone(lab, kind, leaked, escaped):
    lab.start(lab.program("processes", kind))
    lab.see_alive(2)
    lab.open_gate()
    run = lab.collect()
    assert run.outcome.exit_code == 0
    assert run.outcome.stop_reason is None
    assert (run.outcome.tree.leaked, run.outcome.tree.escaped) == (leaked, escaped)
    assert run.outcome.tree.killed == leaked
    assert run.outcome.tree.unreaped == ()
    assert lab.survivors() == set()


def test_a_finished_leader_is_not_held_up_by_whoever_holds_its_pipe(lab):
    run = lab.run(lab.command("sh", "-c", "sleep 60 & echo done"))
    assert run.stdout == b"done\n"
    assert run.outcome.exit_code == 0
    assert run.outcome.tree.leaked == 1
    assert run.elapsed_s < 1.0


def test_a_successor_chain_is_caught(lab):
    lab.start(lab.program("processes", "runaway"))
    lab.see_alive(2)
    lab.open_gate()
    run = lab.collect()
    assert run.outcome.exit_code == 0
    assert run.outcome.tree.unreaped == ()
    assert run.elapsed_s < 20


@pytest.mark.parametrize(
    ("kind", "alive"),
    [("wide", 64), ("chain", 60), ("session_chain", 20), ("stops_itself", 1), ("stops_all", 2), ("closes_streams", 1)],
)
def test_a_timeout_ends_the_whole_tree(lab, kind, alive):
    lab.start(lab.program("processes", kind, timeout_s=0.8, grace_s=0.1))
    lab.see_alive(alive)
    run = lab.collect()
    assert run.outcome.stop_reason is StopReason.TIMEOUT
    assert 0.8 <= run.elapsed_s < 0.8 + 0.1 + LIMIT_S
    assert run.outcome.tree.leaked == 0
    assert run.outcome.tree.unreaped == ()


def test_zombies_that_nobody_waited_for_are_reaped(lab):
    lab.start(lab.program("processes", "zombies", timeout_s=0.8))
    lab.see_alive(1)
    run = lab.collect()
    assert run.outcome.stop_reason is StopReason.TIMEOUT
    assert run.outcome.signal == signal.SIGTERM
    assert run.outcome.tree.killed == 0


@pytest.mark.parametrize("kind", ["ignores_term", "blocks_signals"])
def test_who_ignores_sigterm_is_killed_after_the_grace(lab, kind):
    lab.start(lab.program("processes", kind, timeout_s=0.5, grace_s=0.2))
    lab.see_output(b"ready")
    run = lab.collect()
    assert run.outcome.signal == signal.SIGKILL
    assert [step.signal for step in run.outcome.stop_steps] == ["SIGTERM", "SIGCONT", "SIGKILL"]
    first, _, last = run.outcome.stop_steps
    assert first.at_s >= 0.5
    assert 0.2 <= last.at_s - first.at_s < 0.5
    assert run.elapsed_s < 0.7 + LIMIT_S


def test_output_during_the_grace_is_kept(lab):
    lab.start(lab.program("processes", "prints_on_term", timeout_s=0.5, grace_s=0.3))
    lab.see_output(b"ready")
    run = lab.collect()
    assert run.stdout == b"ready\ndump\n"
    assert run.outcome.signal == signal.SIGKILL


def test_a_leader_that_obeys_does_not_save_children_that_do_not(lab):
    lab.start(lab.program("processes", "obeys_term_with_stubborn_children", timeout_s=0.6, grace_s=5))
    lab.see_output(b"ready")
    lab.see_alive(3)
    run = lab.collect()
    assert run.outcome.signal == signal.SIGTERM
    assert run.outcome.tree.killed == 2
    assert run.outcome.tree.escaped == 1
    assert run.elapsed_s < 0.6 + LIMIT_S


def test_no_grace_means_killed_at_once(lab):
    lab.start(lab.program("processes", "ignores_term", timeout_s=0.5, grace_s=0))
    lab.see_output(b"ready")
    run = lab.collect()
    assert run.outcome.signal == signal.SIGKILL
    assert run.elapsed_s < 0.5 + LIMIT_S


def test_kill_zero_hits_only_its_own_session(lab):
    lab.start(lab.program("processes", "kills_its_group"))
    lab.see_alive(1)
    lab.open_gate()
    run = lab.collect()
    assert run.outcome.signal == signal.SIGKILL
    assert run.outcome.stop_reason is None
    assert run.outcome.stop_steps == ()


def test_exit_and_timeout_at_the_same_moment_never_confuse_the_record(lab):
    for _ in range(60):
        run = lab.run(lab.command("sleep", "0.02", timeout_s=0.02))
        outcome = run.outcome
        if outcome.stop_reason is None:
            assert outcome.exit_code == 0
        else:
            assert outcome.stop_reason is StopReason.TIMEOUT
            assert outcome.exit_code == 0 or outcome.signal == signal.SIGTERM
        assert not outcome.status_lost


def test_ordinary_signals_to_the_guardian_change_nothing(lab):
    run = lab.run(lab.program("processes", "terminates_guardian"))
    assert run.outcome.exit_code == 0
    assert run.stdout == b"still here\n"


def test_a_stranger_is_never_signalled(lab, tmp_path):
    stranger = os.posix_spawn("/bin/sleep", ["sleep", "60"], os.environ, setsid=True)
    try:
        lab.start(lab.program("processes", "escaped"))
        lab.see_alive(2)
        lab.open_gate()
        assert lab.collect().outcome.tree.killed == 1
        assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)
