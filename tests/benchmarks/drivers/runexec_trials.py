"""One process that runs every trial through BenchExec's RunExecutor, without containers, its cheapest way.

runexec_trials.py TRIALS WORKERS TIMEOUT_S OUTPUT_CAP_BYTES FOLDER ARGV...
"""

import logging
import sys
from concurrent.futures import ThreadPoolExecutor

from benchexec.runexecutor import RunExecutor


def main(trials: int, workers: int, timeout_s: int, output_cap_bytes: int, folder: str, argv: list[str]) -> None:
    logging.disable(logging.CRITICAL)

    def share(worker: int) -> None:
        executor = RunExecutor(use_namespaces=False)
        for index in range(worker, trials, workers):
            command = [part.replace("{}", str(index)) for part in argv]
            found = executor.execute_run(command, f"{folder}/{index}.log", walltimelimit=timeout_s, maxLogfileSize=output_cap_bytes)
            with open(f"{folder}/{index}.result", "w", encoding="utf-8") as stream:
                stream.write(repr({key: str(value) for key, value in found.items()}))

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(share, range(workers)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:5]), sys.argv[5], sys.argv[6:])
