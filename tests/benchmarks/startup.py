"""Rows of start-up and of hashing: what a command costs before it does anything, and what a digest costs."""

from __future__ import annotations

import hashlib
import os
import sys
import time

from bench import ROOT, RUN_PY, Bench
from peers import base_environment
from rounds import Spread, command_seconds, in_rounds, within_rounds
from rows import Bound, Goal, Row

FILES, FILE_BYTES = 20_000, 1024
TREE = "import os, sys; sys.path.insert(0, sys.argv[1]); from agent_eval.records.digests import sha256_file\nfor entry in os.scandir(sys.argv[2]): sha256_file(entry.path)"
EMPTY = "python3 -c pass"


def startup(bench: Bench) -> list[Row]:
    """``--help`` of ours and ``--version`` of the peers beside an empty Python program."""
    folder = bench.fresh("startup")
    ours = {"run.py --help": ["--help"], "run.py check --help": ["check", "--help"]}
    commands = {EMPTY: [sys.executable, "-c", "pass"]} | {name: [sys.executable, RUN_PY, *words] for name, words in ours.items()}
    peers = {f"{peer.name} --version": [bench.tools[peer.version[0]], *peer.version[1:]] for peer in bench.peers}
    environment = base_environment(folder)
    # A start is short and noisy: three times the rounds for ours, which are cheap.
    values, reasons = in_rounds(list(commands), bench.rounds * 3, lambda name: command_seconds(commands[name], folder, environment) * 1e3)
    beside = {EMPTY: commands[EMPTY]} | peers
    found, failed = in_rounds(list(beside), min(bench.rounds, 3), lambda name: command_seconds(beside[name], folder, environment) * 1e3)
    rows = [Row("start-up", name, Spread.of(values[name]), " ms", within_rounds(values[name], values[EMPTY]), EMPTY, Goal(3, "x")) for name in ours if name in values]
    rows += [Row("start-up", name, None, " ms", None, EMPTY, Goal(3, "x"), reason) for name, reason in reasons.items()]
    rows.append(Row("start-up", EMPTY, Spread.of(values[EMPTY]), " ms"))
    rows += [Row("start-up", name, Spread.of(found[name]), " ms", within_rounds(found[name], found[EMPTY]), EMPTY) for name in peers if name in found]
    return rows + [Row("start-up", name, None, " ms", note=reason) for name, reason in failed.items()]


def one_large_file(bench: Bench) -> list[Row]:
    """The rate over 1 GiB, in this process, the page cache warm."""
    sys.path.insert(0, ROOT)
    from agent_eval.records.digests import sha256_file

    path = os.path.join(bench.fresh("large"), "file")
    with open(path, "wb") as stream:
        for _ in range(1024):
            stream.write(os.urandom(1 << 20))

    def rate(name: str) -> float:
        began = time.perf_counter()
        if name == "ours":
            sha256_file(path)
        else:
            with open(path, "rb") as stream:
                hashlib.file_digest(stream, "sha256")
        return 1024 / (time.perf_counter() - began)

    rival = "hashlib.file_digest"
    rate(rival)
    values, _ = in_rounds(["ours", rival], max(3, bench.rounds // 2), rate)
    os.unlink(path)
    ratio = within_rounds(values["ours"], values[rival])
    work = "sha256 of 1 GiB"
    return [
        Row(work, "ours", Spread.of(values["ours"]), " MiB/s", ratio, rival, Goal(0.9, "x", Bound.AT_LEAST)),
        Row(work, rival, Spread.of(values[rival]), " MiB/s"),
    ]


def many_small_files(bench: Bench) -> list[Row]:
    """Seconds for 20,000 files of 1 KiB, each by a whole process that finds and hashes them."""
    folder = bench.fresh("small")
    tree = os.path.join(folder, "files")
    os.mkdir(tree)
    for index in range(FILES):
        with open(os.path.join(tree, f"f{index}"), "wb") as stream:
            stream.write(os.urandom(FILE_BYTES))
    rival = "find, xargs, sha256sum"
    commands = {
        "ours": [sys.executable, "-c", TREE, ROOT, tree],
        rival: ["sh", "-c", 'find "$0" -type f -print0 | xargs -0 -n 10000 sha256sum > /dev/null', tree],
    }
    values, reasons = in_rounds(list(commands), bench.rounds, lambda name: command_seconds(commands[name], folder))
    ratio = None if reasons else within_rounds(values["ours"], values[rival])
    note = "; ".join(reasons.values())
    return [
        Row(
            f"sha256 of {FILES:,} files of 1 KiB", name, Spread.of(values[name]) if name in values else None, " s",
            *((ratio, rival, Goal(1.0, "x", Bound.BELOW)) if name == "ours" else ()), note=note,
        )
        for name in commands
    ]  # fmt: skip


def hashing(bench: Bench) -> list[Row]:
    """Both."""
    return one_large_file(bench) + many_small_files(bench)
