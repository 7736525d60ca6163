"""Faults of the folder and its manifest, made in a written folder; and what faults of form in general are made with.

Each is a function of the folder and the set that was written there; where the fault is not one of integrity the manifest
gets the true digests again afterwards.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .artifact_set import ArtifactSet, rehash


@dataclass(frozen=True)
class FormMutant:
    name: str
    change: Callable[[Path, ArtifactSet], None]
    fails: frozenset[str]
    says: tuple[str, ...]       # what the failed checks' details must say
    rehashed: bool


FORM_MUTANTS: list[FormMutant] = []


def form(*fails: str, says: tuple[str, ...] = (), rehashed: bool = True) -> Callable:
    def register(change: Callable[[Path, ArtifactSet], None]) -> Callable[[Path, ArtifactSet], None]:
        FORM_MUTANTS.append(FormMutant(change.__name__, change, frozenset(fails), says, rehashed))
        return change
    return register


def apply(one: FormMutant, folder: Path, made: ArtifactSet) -> None:
    one.change(folder, made)
    if one.rehashed:
        rehash(folder, made.manifest)


def manifest_of(folder: Path) -> dict:
    return json.loads((folder / "complete.json").read_text())


def edit_manifest(folder: Path, change: Callable[[dict], None]) -> None:
    whole = manifest_of(folder)
    change(whole)
    (folder / "complete.json").write_text(json.dumps(whole))


def edit_lines(folder: Path, name: str, change: Callable[[list[bytes]], None]) -> None:
    path = folder / name
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    lines = data.split(b"\n")
    change(lines)
    data = b"\n".join(lines)
    path.write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)


def edit_field(folder: Path, name: str, line: int, column: int, value: bytes) -> None:
    """Replace one field; line and column from 1."""
    def change(lines: list[bytes]) -> None:
        fields = lines[line - 1].split(b",")
        fields[column - 1] = value
        lines[line - 1] = b",".join(fields)
    edit_lines(folder, name, change)


# ---- manifest and folder --------------------------------------------------------------------------------------------

@form("manifest", says=("is missing",), rehashed=False)
def no_manifest(folder: Path, made: ArtifactSet) -> None:
    (folder / "complete.json").unlink()


@form("manifest", says=("not JSON",), rehashed=False)
def manifest_cut_off(folder: Path, made: ArtifactSet) -> None:
    path = folder / "complete.json"
    path.write_bytes(path.read_bytes()[:-40])


@form("manifest", says=("twice",), rehashed=False)
def manifest_with_a_key_twice(folder: Path, made: ArtifactSet) -> None:
    path = folder / "complete.json"
    path.write_text(path.read_text().replace('"status": "complete"', '"status": "running", "status": "complete"'))


@form("manifest", says=("nested",), rehashed=False)
def manifest_nested_without_end(folder: Path, made: ArtifactSet) -> None:
    (folder / "complete.json").write_text('{"schema":' + "[" * 100_000)


@form("manifest", says=("symlink",), rehashed=False)
def manifest_is_a_symlink(folder: Path, made: ArtifactSet) -> None:
    path = folder / "complete.json"
    outside = path.rename(folder.parent / "elsewhere.json")
    path.symlink_to(outside)


@form("manifest", says=("status",))
def run_not_complete(folder: Path, made: ArtifactSet) -> None:
    made.manifest["status"] = "running"


@form("manifest", says=("schema_version",))
def newer_schema(folder: Path, made: ArtifactSet) -> None:
    made.manifest["schema_version"] = 2


@form("manifest", says=("schema_version",))
def schema_version_true(folder: Path, made: ArtifactSet) -> None:
    made.manifest["schema_version"] = True


@form("manifest", says=("schema",))
def another_schema(folder: Path, made: ArtifactSet) -> None:
    made.manifest["schema"] = "edger-artifacts"


@form("manifest", says=("finished_utc",))
def finished_before_it_started(folder: Path, made: ArtifactSet) -> None:
    made.manifest["finished_utc"] = "2026-11-30T14:22:14Z"


@form("manifest", says=("started_utc",))
def time_without_zone(folder: Path, made: ArtifactSet) -> None:
    made.manifest["started_utc"] = "2026-11-30 14:22:15"


@form("manifest", says=("sorted",), rehashed=False)
def files_not_sorted(folder: Path, made: ArtifactSet) -> None:
    edit_manifest(folder, lambda whole: whole["files"].reverse())


@form("manifest", "file-digests", says=("sha256",), rehashed=False)
def digest_in_capitals(folder: Path, made: ArtifactSet) -> None:
    edit_manifest(folder, lambda whole: whole["files"][0].update(sha256=whole["files"][0]["sha256"].upper()))


@form("roles", says=("figure",), rehashed=False)
def role_left_out(folder: Path, made: ArtifactSet) -> None:
    (folder / "ma_plot.png").unlink()
    edit_manifest(folder, lambda whole: whole.update(files=[one for one in whole["files"] if one["role"] != "figure"]))


@form("roles", says=("script", "figure"), rehashed=False)
def role_twice(folder: Path, made: ArtifactSet) -> None:
    edit_manifest(folder, lambda whole: next(one for one in whole["files"] if one["role"] == "script").update(role="figure"))


@form("roles", says=("notes",), rehashed=False)
def role_of_no_schema(folder: Path, made: ArtifactSet) -> None:
    data = b"hello\n"
    (folder / "notes.txt").write_bytes(data)
    entry = {"path": "notes.txt", "role": "notes", "bytes": 6,
             "sha256": "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"}
    edit_manifest(folder, lambda whole: whole.update(files=sorted([*whole["files"], entry], key=lambda one: one["path"])))


@form("tables", says=("results.csv.gz", "the columns are"), rehashed=False)
def roles_of_two_tables_exchanged(folder: Path, made: ArtifactSet) -> None:
    def change(whole: dict) -> None:
        one, other = (next(entry for entry in whole["files"] if entry["role"] == role) for role in ("results", "lfc_shrunken"))
        one["role"], other["role"] = other["role"], one["role"]
    edit_manifest(folder, change)


def _path_of_script(folder: Path, path: str) -> None:
    (folder / "analysis.R").unlink()

    def change(whole: dict) -> None:
        next(one for one in whole["files"] if one["role"] == "script")["path"] = path
        whole["files"].sort(key=lambda one: one["path"])
    edit_manifest(folder, change)


@form("paths", says=("absolute",), rehashed=False)
def absolute_path(folder: Path, made: ArtifactSet) -> None:
    _path_of_script(folder, "/etc/passwd")


@form("paths", says=("..",), rehashed=False)
def escaping_path(folder: Path, made: ArtifactSet) -> None:
    (folder.parent / "analysis.R").write_bytes(b"# simulated\n")
    _path_of_script(folder, "../analysis.R")


@form("paths", says=("lone surrogate",), rehashed=False)
def path_with_a_lone_surrogate(folder: Path, made: ArtifactSet) -> None:
    _path_of_script(folder, "a\udc80.R")


@form("paths", says=("control",), rehashed=False)
def path_with_a_nul(folder: Path, made: ArtifactSet) -> None:
    _path_of_script(folder, "a\x00.R")


@form("paths", says=("symlink",), rehashed=False)
def symlink_to_the_same_content(folder: Path, made: ArtifactSet) -> None:
    path = folder / "results.csv.gz"
    path.symlink_to(path.rename(folder.parent / "results.csv.gz"))


@form("paths", "file-set", says=("through the symlink",), rehashed=False)
def folder_that_is_a_symlink(folder: Path, made: ArtifactSet) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "analysis.R").write_bytes(b"# simulated\n")
    (folder / "sub").symlink_to(outside)
    _path_of_script(folder, "sub/analysis.R")


@form("paths", says=("regular",), rehashed=False)
def named_pipe(folder: Path, made: ArtifactSet) -> None:
    (folder / "analysis.R").unlink()
    os.mkfifo(folder / "analysis.R")


@form("file-set", says=("sessionInfo.txt",), rehashed=False)
def declared_file_missing(folder: Path, made: ArtifactSet) -> None:
    (folder / "sessionInfo.txt").unlink()


@form("file-set", says=("old_results.csv",), rehashed=False)
def file_not_declared(folder: Path, made: ArtifactSet) -> None:
    (folder / "old_results.csv").write_text("left over\n")


@form("file-set", says=(".Rhistory",), rehashed=False)
def hidden_file_not_declared(folder: Path, made: ArtifactSet) -> None:
    (folder / ".Rhistory").write_text("")


@form("file-set", says=("plots",), rehashed=False)
def folder_not_declared(folder: Path, made: ArtifactSet) -> None:
    (folder / "plots").mkdir()


@form("file-digests", says=("analysis.R", "sha256"), rehashed=False)
def one_byte_changed(folder: Path, made: ArtifactSet) -> None:
    (folder / "analysis.R").write_bytes(b"# simulateD\n")


@form("file-digests", says=("analysis.R", "bytes"), rehashed=False)
def one_byte_added(folder: Path, made: ArtifactSet) -> None:
    (folder / "analysis.R").write_bytes(b"# simulated\n\n")


@form("manifest", says=("more than 1000",), rehashed=False)
def manifest_of_very_many_files(folder: Path, made: ArtifactSet) -> None:
    edit_manifest(folder, lambda whole: whole.update(files=whole["files"] * 100))


@form("paths", says=("longer than",), rehashed=False)
def path_without_end(folder: Path, made: ArtifactSet) -> None:
    _path_of_script(folder, "a/" * 200_000 + "b")
