"""Not a truth of root only: the suites of the supervisor and of the evidence pass as an ordinary user too.

When the tests run as root, this runs those suites once more as uid 65534, from a copy that the user may read.
"""

from __future__ import annotations

import concurrent.futures
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Two at once: they wait more than they compute, and tests pass in parallel with themselves.
SUITES = (("tests/supervise",), ("tests/evidence/test_directory.py", "tests/evidence/test_disk.py", "tests/cli/test_check.py"))
NOBODY = 65534
PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@pytest.fixture
def copy() -> Iterator[pathlib.Path]:
    """A copy of the project that everybody may read, with a folder for temporary files that the user may write."""
    if os.geteuid() != 0:
        pytest.skip("skipped: these tests run as an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("skipped: there is no setpriv to become an ordinary user")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="agent-eval-user-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        ignored = shutil.ignore_patterns("__pycache__", "target", ".git", ".venv", ".*_cache")
        shutil.copytree(ROOT, folder / "project", ignore=ignored)
        for name in PACKAGES:
            found = importlib.util.find_spec(name)
            if found is not None and found.submodule_search_locations:
                shutil.copytree(pathlib.Path(found.origin).parent, folder / "packages" / name, ignore=ignored)
            elif found is not None:
                shutil.copy(found.origin, folder / "packages")
        (folder / "tmp").mkdir()
        os.chown(folder / "tmp", NOBODY, NOBODY)
        subprocess.run(["chmod", "-R", "a+rX", str(folder / "project"), str(folder / "packages")], check=True)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def python_for_everybody() -> str:
    """A Python of the version that runs this, which an ordinary user may execute."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (shutil.which(f"python{version}", path="/usr/local/bin:/usr/bin:/bin"), os.path.realpath(sys.executable)):
        if candidate is not None:
            code = f"import sys; sys.exit(sys.version_info[:2] != {sys.version_info[:2]})"
            if subprocess.run([*AS_NOBODY, candidate, "-c", code], capture_output=True, cwd="/").returncode == 0:
                return candidate
    pytest.skip(f"skipped: no Python {version} that an ordinary user may execute")


def test_the_suites_pass_as_an_ordinary_user(copy: pathlib.Path) -> None:
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(copy / "tmp"),
        "TMPDIR": str(copy / "tmp"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(copy / "packages"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [*AS_NOBODY, python_for_everybody(), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    with concurrent.futures.ThreadPoolExecutor(len(SUITES)) as pool:
        runs = [
            pool.submit(subprocess.run, [*command, *suites], cwd=copy / "project", env=environment, capture_output=True, text=True, timeout=900)
            for suites in SUITES
        ]
    for done in (run.result() for run in runs):
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert " passed" in done.stdout
