"""Which bytes really run: behind a launcher, in a package, by an interpreter."""

from __future__ import annotations

import json
import os
import pathlib

import pytest

from agent_eval import InvalidInput
from consumers.core_agent.adapter import load
from consumers.core_agent.adapter.identity_files import find_installation, interpreter_command, tree_digest, version_at_least


def package(root: pathlib.Path, name: str) -> pathlib.Path:
    folder = root / "node_modules" / name
    folder.mkdir(parents=True)
    (folder / "package.json").write_text(json.dumps({"name": name}))
    return folder


def program(path: pathlib.Path, data: bytes) -> pathlib.Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(0o755)
    return path


def test_the_executable_behind_an_npm_launcher_is_what_runs(tmp_path: pathlib.Path) -> None:
    launcher = program(package(tmp_path, "@openai/codex") / "bin" / "codex.js", b"#!/usr/bin/env node\n")
    behind = program(
        package(tmp_path, "@openai/codex-linux-x64") / "vendor" / "x86_64-unknown-linux-musl" / "bin" / "codex", b"\x7fELF rest"
    )
    link = tmp_path / "node_modules" / ".bin" / "codex"
    link.parent.mkdir()
    link.symlink_to(os.path.relpath(launcher, link.parent))
    found = find_installation(load.load("codex"), str(link))
    assert found.runs == str(behind)
    roles = {file.role: file.path for file in found.files}
    assert roles["program"] == str(link)
    assert roles["runs"] == str(behind)


def test_an_executable_given_directly_is_what_runs(tmp_path: pathlib.Path) -> None:
    binary = program(tmp_path / "codex", b"\x7fELF rest")
    assert find_installation(load.load("codex"), str(binary)).runs == str(binary)


def test_a_script_is_its_package_tree(tmp_path: pathlib.Path) -> None:
    folder = package(tmp_path, "pi")
    script = program(folder / "dist" / "cli.js", b"#!/usr/bin/env node\n")
    first = find_installation(load.load("pi"), str(script))
    assert first.package_root == str(folder)
    assert first.tree_files == 2
    (folder / "dist" / "lib.js").write_text("changed")
    again = find_installation(load.load("pi"), str(script))
    assert (again.tree_files, again.tree_sha256 == first.tree_sha256) == (3, False)
    (tmp_path / "node_modules" / ".package-lock.json").write_text("{}")
    assert find_installation(load.load("pi"), str(script)).tree_sha256 != again.tree_sha256


def test_a_lone_script_has_no_tree(tmp_path: pathlib.Path) -> None:
    script = program(tmp_path / "pi", b"#!/usr/bin/env python3\n")
    found = find_installation(load.load("pi"), str(script))
    assert found.tree_sha256 is None
    # It asks for node and is a wrapper in something else.
    assert interpreter_command(load.load("pi"), found) is None


def test_a_tree_that_is_too_large_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("consumers.core_agent.adapter.identity_files.MAX_TREE_FILES", 2)
    for number in range(3):
        (tmp_path / str(number)).write_text("x")
    with pytest.raises(InvalidInput, match="more than 2 files"):
        tree_digest(str(tmp_path))


@pytest.mark.parametrize(("version", "least", "enough"), [
    ("v22.23.3", "20.6", True), ("v20.5.9", "20.6", False), ("Python 3.12.1", "3.12", True), ("Python 3.9.18", "3.12", False), ("v20", "20", True),
])
def test_versions_are_compared_by_number(version: str, least: str, enough: bool) -> None:
    assert version_at_least(version, least) is enough
