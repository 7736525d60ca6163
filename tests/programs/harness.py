"""A harness of its own process: runs ``processes.py KIND`` under one slot or two, and reports.

Usage: harness.py MARK FOLDER KIND [TIMEOUT_S [SLOTS]]. Writes ``started`` into the folder when its slots
run, and the outcomes to ``outcomes.json`` when they end. Made to be killed.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from agent_eval.supervise.command import Command
from agent_eval.supervise.process import prepare_process
from agent_eval.supervise.slot import Slot


def main(mark, folder, kind, timeout_s="30", slots="1"):
    prepare_process()
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "processes.py")
    running = [Slot(mark) for _ in range(int(slots))]
    for number, slot in enumerate(running):
        slot.start(
            Command(
                argv=(sys.executable, "-I", "-S", program, kind),
                cwd=folder,
                env={"PATH": os.environ["PATH"]},
                timeout_s=float(timeout_s),
                grace_s=0.2,
                max_output_bytes=1 << 16,
                stdout_path=f"{folder}/stdout-{number}",
            )
        )
    with open(f"{folder}/started", "w") as file:
        file.write(" ".join(str(slot.guardian) for slot in running))
    outcomes = [slot.collect().to_json() for slot in running]
    for slot in running:
        slot.close()
    with open(f"{folder}/outcomes.json", "w") as file:
        json.dump(outcomes, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
