"""Places where a supervisor is at its limits: process 1, another user, uninterruptible sleep, a parent's bad habits."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agent_eval.records.outcome import Outcome, StopReason
from agent_eval.supervise import linux
from tests.supervise.lab import PROGRAMS, Lab, another_users_python, public_copy, wait_until

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="skipped: this place is Linux's")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="skipped: needs root")

RUN_ONE = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from agent_eval.supervise.command import Command
from agent_eval.supervise.process import prepare_process
from agent_eval.supervise.slot import Slot
prepare_process()
values = json.loads(sys.argv[2])
with Slot(values.pop("mark", "one")) as slot:
    outcome = slot.run(Command(**{"cwd": "/", "env": {"PATH": os.environ["PATH"]}, "timeout_s": 20, "grace_s": 0.1,
                                  "max_output_bytes": 65536, **values, "argv": tuple(values["argv"])}))
    os.write(int(sys.argv[3]) if len(sys.argv) > 3 else 1, json.dumps(outcome.to_json()).encode())
"""


def run_one(wrapper: list[str], values: dict[str, object], **options) -> Outcome:
    """One command under a slot in a process that ``wrapper`` starts."""
    argv = [*wrapper, sys.executable, "-c", RUN_ONE, str(ROOT), json.dumps(values)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, **options)
    assert done.returncode == 0, done.stderr
    return Outcome.from_json(json.loads(done.stdout))


def namespace(*flags: str) -> list[str]:
    """The prefix that runs a command in namespaces of its own; skips where that is not allowed."""
    prefix = ["unshare", *flags]
    if os.geteuid() != 0:
        prefix.append("-r")
    if not shutil.which("unshare") or subprocess.run([*prefix, "true"], capture_output=True).returncode != 0:
        pytest.skip("skipped: namespaces are not allowed here")
    return prefix


def test_as_process_one_of_a_container():
    prefix = namespace("-p", "-f", "--mount-proc", "--kill-child")
    outcome = run_one(prefix, {"argv": ["sh", "-c", "setsid sleep 60 >/dev/null 2>&1 & exit 3"]})
    assert outcome.exit_code == 3
    assert outcome.tree.leaked == outcome.tree.killed == 1
    assert outcome.tree.unreaped == ()


def test_process_one_does_not_sweep_the_orphans_of_strangers(tmp_path):
    """The guardian is killed, and the container's process 1 has got an orphan that is not of the trial."""
    prefix = namespace("-p", "-f", "--mount-proc", "--kill-child")
    program = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from agent_eval.supervise.command import Command
from agent_eval.supervise.process import prepare_process
from agent_eval.supervise.slot import Slot
prepare_process()
stranger = os.posix_spawn("/bin/sleep", ["sleep", "60"], {{}}, setsid=True)
time.sleep(0.03)
with Slot("one") as slot:
    argv = (sys.executable, "-I", "-S", {str(PROGRAMS / "processes.py")!r}, "kills_guardian")
    slot.start(Command(argv=argv, cwd={str(tmp_path)!r}, env={{}}, timeout_s=20, max_output_bytes=1024))
    os.close(os.open({str(tmp_path / "gate")!r}, os.O_WRONLY))
    outcome = slot.collect()
print(outcome.stop_reason.value, outcome.tree.killed > 0, len(outcome.tree.unreaped), os.waitpid(stranger, os.WNOHANG)[0])
"""
    os.mkfifo(tmp_path / "gate")
    done = subprocess.run([*prefix, sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["supervisor-lost", "True", "0", "0"], done


def test_killing_everybody_in_a_namespace_of_its_own():
    """``kill -1`` spares only its caller and process 1 of the namespace: the harness's own sweep has to find the caller."""
    prefix = namespace("-p", "-f", "--mount-proc", "--kill-child")
    outcome = run_one(prefix, {"argv": [sys.executable, "-I", "-S", "-c", "import os, time; os.kill(-1, 9); time.sleep(60)"]})
    assert outcome.stop_reason is StopReason.SUPERVISOR_LOST
    assert outcome.signal == signal.SIGKILL
    assert outcome.tree.unreaped == ()


@needs_root
def test_uninterruptible_sleep_is_named_and_does_not_hang(tmp_path):
    prefix = namespace("-m")
    if not os.path.exists("/dev/fuse"):
        pytest.skip("skipped: no FUSE here")
    (tmp_path / "mount").mkdir()
    program = f"""
import os, subprocess, sys, time
sys.path.insert(0, {str(ROOT)!r})
from agent_eval.supervise.command import Command
from agent_eval.supervise.slot import Slot
mount = {str(tmp_path / "mount")!r}
daemon = subprocess.Popen([sys.executable, {str(PROGRAMS / "hung_mount.py")!r}, mount], stdout=subprocess.PIPE)
if daemon.stdout.readline() != b"mounted\\n":
    sys.exit(77)
with Slot("hung") as slot:
    def run(*argv):
        return slot.run(Command(argv=argv, cwd="/", env={{"PATH": os.environ["PATH"]}}, timeout_s=0.3, grace_s=0.1,
                                max_output_bytes=1024))
    began = time.monotonic()
    first = run("stat", mount + "/x")
    elapsed_s = time.monotonic() - began
    second = run("true")
    daemon.kill()
    daemon.wait()
    left = first.tree.unreaped
    until = time.monotonic() + 5
    while left and os.path.exists(f"/proc/{{left[0].pid}}") and time.monotonic() < until:
        time.sleep(0.01)
print(elapsed_s, os.path.exists(f"/proc/{{left[0].pid}}"), first.stop_reason.value, first.status_lost, *[one.name for one in left], second.exit_code, second.tree.leaked)
"""
    done = subprocess.run([*prefix, sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    if done.returncode == 77:
        pytest.skip("skipped: FUSE cannot be mounted here")
    elapsed_s, *facts = done.stdout.split()
    assert 0.4 <= float(elapsed_s) < 0.3 + 0.1 + 1.0
    assert facts == ["False", "timeout", "True", "stat", "0", "0"]


BECOME_ROOT = """
#include <unistd.h>
int main(void){if(setuid(0))return 77;setsid();close(0);close(1);close(2);sleep(60);return 0;}
"""


@needs_root
def test_a_program_that_became_root_is_named():
    """What ``sudo`` does: its real user is another one, so an ordinary user's SIGKILL is refused."""
    interpreter = another_users_python()
    if not shutil.which("cc") or not shutil.which("setpriv") or interpreter is None:
        pytest.skip("skipped: needs a C compiler, setpriv, and a Python that another user may run")
    with public_copy("agent_eval") as root:
        program = root / "become"
        subprocess.run(["cc", "-x", "c", "-o", str(program), "-"], input=BECOME_ROOT.encode(), check=True, timeout=60)
        program.chmod(0o4755)
        argv = ["sh", "-c", f"{program} & sleep 0.1; kill -0 $! 2>/dev/null && exit 7; exit 3"]
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        command = [*user, interpreter, "-B", "-c", RUN_ONE, str(root), json.dumps({"argv": argv})]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/")
        elapsed_s = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    outcome = Outcome.from_json(json.loads(done.stdout))
    if outcome.exit_code == 7:
        pytest.skip("skipped: set-uid programs do not work here")
    try:
        assert outcome.exit_code == 3
        assert outcome.tree.leaked == 1
        assert [left.name for left in outcome.tree.unreaped] == ["become"]
        assert elapsed_s < 5
    finally:
        for left in outcome.tree.unreaped:
            os.kill(left.pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [0, 7])
def test_a_parent_that_ignores_sigchld_does_not_change_an_exit_code(code):
    """cpython issue 96863: ``Popen.wait`` would report 0."""

    wrapper = [
        sys.executable,
        "-c",
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    outcome = run_one(wrapper, {"argv": ["sh", "-c", f"exit {code}"]})
    assert outcome.exit_code == code
    assert not outcome.status_lost


def test_a_parent_that_blocks_signals_does_not_block_the_programs():
    wrapper = [
        sys.executable,
        "-c",
        "import os, signal, sys; signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    outcome = run_one(wrapper, {"argv": ["sh", "-c", "kill -TERM $$; sleep 60"]})
    assert outcome.signal == signal.SIGTERM


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_missing_standard_descriptors_are_repaired(tmp_path, closed):
    """Otherwise the first files opened would become the program's or somebody's stdout (cpython issue 77025)."""
    result = os.open(tmp_path / "result", os.O_WRONLY | os.O_CREAT)
    closing = " ".join(f"{number}>&-" if number else "0<&-" for number in closed)
    values = {"argv": ["sh", "-c", "ls -l /proc/self/fd >&2; cat; echo out"], "stdout_path": str(tmp_path / "stdout")}
    script = f'exec "$@" {closing}'
    argv = ["sh", "-c", script, "sh", sys.executable, "-c", RUN_ONE, str(ROOT), json.dumps(values), str(result)]
    try:
        done = subprocess.run(argv, pass_fds=[result], capture_output=True, timeout=60)
    finally:
        os.close(result)
    assert done.returncode == 0, done.stderr
    assert Outcome.from_json(json.loads((tmp_path / "result").read_text())).exit_code == 0
    assert (tmp_path / "stdout").read_text() == "out\n"


def test_a_vfork_child_that_never_execs_dies_with_its_parent(lab):
    if not shutil.which("cc"):
        pytest.skip("skipped: no C compiler")
    source = lab.work / "v.c"
    source.write_text("#include <unistd.h>\nint main(){if(!vfork())pause();return 0;}\n")
    subprocess.run(["cc", "-w", "-o", str(lab.work / "v"), str(source)], check=True, timeout=60)
    lab.start(lab.command(str(lab.work / "v"), timeout_s=0.5, grace_s=0.1))
    lab.see_alive(2)
    run = lab.collect()
    assert run.outcome.stop_reason is StopReason.TIMEOUT
    assert run.outcome.tree.unreaped == ()
    assert run.elapsed_s < 0.6 + 1.0


def test_a_busy_machine_does_not_break_a_short_limit(lab):
    spinners = [subprocess.Popen([sys.executable, "-I", "-S", "-c", "while True: pass"]) for _ in range(2)]
    try:
        run = lab.run(lab.command(sys.executable, "-I", "-S", "-c", "while True: pass", timeout_s=0.01))
        assert run.outcome.stop_reason is StopReason.TIMEOUT
        assert run.elapsed_s < 0.01 + 0.2 + 1.0
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def test_a_fork_bomb_within_bounds_is_gone(lab):
    """Every process forks as fast as it can, each in a session of its own, up to a limit of processes for the tree."""
    program = (
        "import os, time\n"
        "end = time.monotonic() + 1.0\n"
        "open('started', 'w').close()\n"
        "depth = 0\n"
        "while time.monotonic() < end and depth < 9:\n"
        "    depth += 1\n"
        "    if os.fork() == 0: os.setsid()\n"
        "time.sleep(60)\n"
    )
    lab.start(lab.command(sys.executable, "-I", "-S", "-c", program, timeout_s=0.6, grace_s=0.0))
    lab.see_alive(100)
    run = lab.collect()
    named = {left.pid for left in run.outcome.tree.unreaped}  # a busy machine may not bury hundreds in time
    assert lab.survivors() <= named
    assert run.elapsed_s < 0.6 + 1.0
    assert wait_until(lambda: not lab.survivors())


def test_suspension_is_recorded_and_is_no_timeout(tmp_path, monkeypatch):
    """The clock of sleep runs an hour ahead while the trial's own clock counts a moment."""
    reads = iter(range(1, 1000))
    monkeypatch.setattr(linux, "sleep_clock", lambda: 3600.0 * next(reads))
    lab = Lab(tmp_path)
    with lab.slot:
        outcome = lab.run(lab.command("true", timeout_s=5)).outcome
    assert outcome.exit_code == 0 and outcome.stop_reason is None
    assert outcome.suspended_s == 3600.0
    assert outcome.wall_s < 5


def test_without_a_subreaper_the_group_is_what_holds(tmp_path, monkeypatch):
    """The weaker containment of other systems: the group dies, and the record says what it was."""
    monkeypatch.setattr(linux, "become_subreaper", lambda: False)
    monkeypatch.delattr(os, "pidfd_open")
    lab = Lab(tmp_path)
    with lab.slot:
        lab.start(lab.program("processes", "background"))
        lab.see_alive(2)
        lab.open_gate()
        run = lab.collect()
        assert run.outcome.tree.containment == "group"
        assert run.outcome.exit_code == 0
        assert wait_until(lambda: not lab.survivors(), 1.0)
        run = lab.run(lab.program("processes", "ignores_term", timeout_s=0.4, grace_s=0.1))
        assert run.outcome.stop_reason is StopReason.TIMEOUT
        assert run.outcome.signal == signal.SIGKILL
        assert lab.survivors() == set()
