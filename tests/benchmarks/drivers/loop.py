"""The two references: ``subprocess.run`` with capture in a loop.

    loop.py plain|timed TRIALS WORKERS PROGRAM FOLDER

``plain`` is the call alone, by two workers as two processes. ``timed`` has ``timeout=60`` and two workers as two threads:
Python's wait with a timeout polls in steps that begin at half a millisecond, so the two differ for short programs.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor


def main(how: str, trials: int, workers: int, program: str, folder: str) -> int:
    def one(index: int) -> int:
        command = [program, os.path.join(folder, f"{index}.json")]
        if how == "timed":
            return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60).returncode
        return subprocess.run(command, capture_output=True).returncode

    if workers == 1:
        return max(map(one, range(trials)))
    if how == "timed":
        with ThreadPoolExecutor(workers) as pool:
            return max(pool.map(one, range(trials)))
    parts = []
    for worker in range(workers):
        place = os.path.join(folder, f"worker{worker}")
        os.mkdir(place)
        parts.append(subprocess.Popen([sys.executable, __file__, how, str(trials // workers), "1", program, place]))
    return max(part.wait() for part in parts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:6]))
