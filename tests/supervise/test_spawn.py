"""A program's environment is exactly the one that was asked for, however often it was the same before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

CODE = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from agent_eval.supervise.spawn import StartFailed, start
null = os.open("/dev/null", os.O_RDWR)
seen = []
def run(env, argv=None):
    read, write = os.pipe()
    try:
        pid = start(argv or [sys.executable, "-c", "import os, sys; sys.stdout.buffer.write(b'\\\\0'.join(sorted(b'='.join(p) for p in os.environb.items())))"], env, "/", (null, write, null))
    except StartFailed as failure:
        os.close(write), os.close(read)
        seen.append(failure.error.stage)
        return
    os.close(write)
    with open(read, "rb") as stream:
        seen.append([entry for entry in stream.read().decode("latin-1").split("\\0") if not entry.startswith("LC_CTYPE=")])
    os.waitpid(pid, 0)
one = {"PATH": os.environ["PATH"], "A": "1", "ODD": "x\\udcffy"}
two = {"B": "2"}
for env in (one, one, one, two, two, two, one, {}, {}, {}, one):
    run(dict(env))
for _ in range(3):
    run({"A=B": "c"})
    run({"A": "nul\\0"})
run(two), run(two)
run(one, ["sh", "-c", "printf %s \\"$A\\""]), run(one, ["sh", "-c", "printf %s \\"$A\\""]), run(one, ["sh", "-c", "printf %s \\"$A\\""])
run({"PATH": "/nonexistent"}, ["sh"]), run({"PATH": "/nonexistent"}, ["sh"]), run({"PATH": "/nonexistent"}, ["sh"])
print(json.dumps([seen, one["PATH"]]))
"""


def test_environments_in_a_row():

    done = subprocess.run([sys.executable, "-c", CODE, str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen, path = json.loads(done.stdout)
    one, two = ["A=1", "ODD=x\xffy", f"PATH={path}"], ["B=2"]
    assert seen[:11] == [one, one, one, two, two, two, one, [], [], [], one]
    assert seen[11:17] == ["env"] * 6
    assert seen[17:19] == [two, two]
    assert seen[19:22] == [["1"]] * 3
    assert seen[22:] == ["exec"] * 3
