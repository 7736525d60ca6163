"""What a supervised program finds around itself, as JSON on stdout."""

import json
import os
import resource
import signal
import stat


def descriptors():
    found = {}
    for number in range(256):
        try:
            facts = os.fstat(number)
        except OSError:
            continue
        found[number] = f"{stat.S_IFMT(facts.st_mode):o}"
    return found


def status():
    wanted = ("SigBlk", "SigIgn", "SigPnd")
    with open("/proc/self/status") as file:
        return dict(line.split()[:2] for line in file if line.partition(":")[0] in wanted)


def terminal():
    try:
        os.open("/dev/tty", os.O_RDWR)
    except OSError as error:
        return error.errno
    return 0


print(
    json.dumps(
        {
            "descriptors": descriptors(),
            "status": status(),
            "terminal": terminal(),
            "session": os.getsid(0) == os.getpid(),
            "group": os.getpgid(0) == os.getpid(),
            "core": resource.getrlimit(resource.RLIMIT_CORE)[0],
            "environment": dict(os.environ),
            "cwd": os.getcwd(),
            "stdin": len(os.read(0, 100)),
            "dispositions": [n for n in signal.valid_signals() if n not in (9, 19) and signal.getsignal(n) == signal.SIG_IGN],
        }
    )
)
