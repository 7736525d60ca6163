"""Tiny hostile process trees. Usage: processes.py KIND. Each kind is one function.

Those that end by themselves first wait at the gate, a FIFO named ``gate`` in the working
directory, so that a test can see them alive. Everything ends after a minute by itself.
"""

import os
import signal
import sys
import time


def nap():
    time.sleep(60)
    os._exit(0)


def gate():
    with open("gate") as fifo:
        fifo.read()


def to_null():
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)


def daemonize():
    """Become a grandchild in a session of its own; returns only there."""
    if os.fork():
        return False
    os.setsid()
    if os.fork():
        os._exit(0)
    return True


def background():
    if os.fork() == 0:
        nap()
    print("done", flush=True)
    gate()


def escaped():
    if daemonize():
        nap()
    gate()


def quiet_daemon():
    if daemonize():
        to_null()
        nap()
    gate()


def cleared_environment():
    if daemonize():
        to_null()
        os.execve("/bin/sleep", ["sleep", "60"], {})
    gate()


def own_group():
    if os.fork() == 0:
        os.setpgid(0, 0)
        nap()
    gate()


def wide():
    for _ in range(6):
        os.fork()
    nap()


def chain():
    for _ in range(60):
        if os.fork():
            break
    nap()


def session_chain():
    for _ in range(20):
        if os.fork():
            break
        os.setsid()
    nap()


def zombies():
    for _ in range(200):
        if os.fork() == 0:
            os._exit(0)
    nap()


def runaway():
    """A process that is never the same twice: each lives a moment and leaves a successor."""
    if os.fork() == 0:
        os.setsid()
        to_null()
        for _ in range(3000):
            if os.fork():
                os._exit(0)
            time.sleep(0.001)
        os._exit(0)
    gate()


def keeps_writing():
    if os.fork() == 0:
        while True:
            os.write(1, b"x\n")
            time.sleep(0.02)
    gate()


def ignores_term():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    print("ready", flush=True)
    nap()


def blocks_signals():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    print("ready", flush=True)
    nap()


def prints_on_term():
    signal.signal(signal.SIGTERM, lambda *_: print("dump", flush=True))
    print("ready", flush=True)
    while True:
        time.sleep(9)


def obeys_term_with_stubborn_children():
    for make_session in (False, True):
        if os.fork() == 0:
            if make_session:
                os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            nap()
    print("ready", flush=True)
    nap()


def stops_itself():
    os.kill(os.getpid(), signal.SIGSTOP)
    nap()


def stops_all():
    """A stopped parent with a stopped child in a session of its own."""
    if os.fork() == 0:
        os.setsid()
        os.kill(os.getpid(), signal.SIGSTOP)
        nap()
    os.kill(os.getpid(), signal.SIGSTOP)
    nap()


def kills_its_group():
    gate()
    os.kill(0, signal.SIGKILL)


def closes_streams():
    os.close(1)
    os.close(2)
    nap()


def kills_guardian():
    if daemonize():
        to_null()
        nap()
    gate()
    os.kill(os.getppid(), signal.SIGKILL)
    nap()


def kills_guardian_from_cleared_daemon():
    guardian = os.getppid()
    if daemonize():
        to_null()
        program = f"kill -9 {guardian}; exec sleep 60"
        while not os.path.exists("go"):
            time.sleep(0.005)
        os.execve("/bin/sh", ["sh", "-c", program], {})
    gate()
    with open("go", "w"):
        pass
    nap()


def stops_guardian():
    if daemonize():
        to_null()
        nap()
    gate()
    os.kill(os.getppid(), signal.SIGSTOP)
    nap()


def terminates_guardian():
    """What ``pkill`` by the harness's name does: every ordinary signal to our parent."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGTSTP):
        os.kill(os.getppid(), number)
    print("still here", flush=True)


def sleeps():
    print("ready", flush=True)
    nap()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
