"""The house: imports go one way, there is no circle, and nothing but the standard library is used."""

from __future__ import annotations

import ast
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("records", "supervise", "evidence", "grade", "trials", "measure", "gates", "report", "cli")
LIBRARY = sorted((ROOT / "agent_eval").rglob("*.py"))
CONSUMERS = sorted(
    path for path in (ROOT / "consumers").rglob("*.py") if "scenarios" not in path.relative_to(ROOT).parts
)
BANNED = {"utils", "helpers", "common", "manager", "misc", "util", "helper"}
MAX_LINES = 400
MAX_FUNCTION_LINES = 60


def tree_of(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def module_name(path: pathlib.Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: pathlib.Path) -> list[tuple[str, int]]:
    """Every absolute module name that a file imports, relative ones resolved, with the line."""
    package = module_name(path).split(".")
    if path.name != "__init__.py":
        package = package[:-1]
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found += [(f"{module}.{alias.name}", node.lineno) for alias in node.names] or [(module, node.lineno)]
    return found


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if parts[0] == "agent_eval" and len(parts) > 1 and parts[1] in ROOMS else None


def test_the_house_is_not_empty() -> None:
    assert {room_of(module_name(path)) for path in LIBRARY} >= set(ROOMS) - {"gates"}
    assert CONSUMERS


def test_rooms_import_only_earlier_rooms() -> None:
    wrong = []
    for path in LIBRARY:
        own = room_of(module_name(path))
        for name, line in imported(path):
            other = room_of(name)
            if own is not None and other is not None and ROOMS.index(other) > ROOMS.index(own):
                wrong.append(f"{path.relative_to(ROOT)}:{line} ({own}) imports {name}")
    assert not wrong, "\n".join(wrong)


def test_no_circle_between_modules() -> None:
    names = {module_name(path): path for path in LIBRARY}
    graph = {}
    for name, path in names.items():
        targets = set()
        for found, _ in imported(path):
            target = found if found in names else found.rpartition(".")[0]
            if target in names and target != name:
                targets.add(target)
        graph[name] = targets
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " -> ".join((*trail[trail.index(name) :], name))
        if name not in done:
            for target in graph[name]:
                visit(target, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())
    assert done == set(graph)


def test_everything_imported_is_standard_library() -> None:
    own = {"agent_eval", "consumers"}
    wrong = []
    for path in [ROOT / "run.py", *LIBRARY, *CONSUMERS]:
        siblings = {other.stem for other in path.parent.glob("*.py")}
        for name, line in imported(path):
            top = name.split(".")[0]
            if top not in sys.stdlib_module_names and top not in own and top not in siblings:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
    assert not wrong, "\n".join(wrong)


def test_the_library_imports_and_names_no_consumer() -> None:
    consumers = {path.parent.name for path in (ROOT / "consumers").glob("*/consumer.py")}
    spellings = consumers | {name.replace("_", "-") for name in consumers}
    spellings -= {"check"}
    wrong = []
    for path in LIBRARY:
        for name, line in imported(path):
            if name.split(".")[0] == "consumers":
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}")
        tree = tree_of(path)
        documentation = docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
                words = set(node.value.replace("/", " ").replace("'", " ").replace('"', " ").split())
                if words & spellings:
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno} spells {sorted(words & spellings)}")
    assert not wrong, "\n".join(wrong)


def docstrings(tree: ast.Module) -> set[int]:
    """Ids of the constant nodes that are docstrings or documentation after an assignment."""
    found = set()
    for owner in ast.walk(tree):
        for statement in getattr(owner, "body", ()) if isinstance(getattr(owner, "body", None), list) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found.add(id(statement.value))
    return found


def test_a_consumer_imports_only_its_folder_and_public_names() -> None:
    import agent_eval

    public = set(agent_eval.__all__)
    wrong = []
    for path in CONSUMERS:
        folder = path.relative_to(ROOT / "consumers").parts[0]
        for name, line in imported(path):
            parts = name.split(".")
            if parts[0] == "agent_eval" and len(parts) > 1 and (len(parts) > 2 or parts[1] not in public):
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}, not a public name")
            if parts[0] == "consumers" and parts[1:2] != [folder]:
                wrong.append(f"{path.relative_to(ROOT)}:{line} imports {name}, another consumer")
    assert not wrong, "\n".join(wrong)


def test_every_public_name_resolves_and_is_documented() -> None:
    import agent_eval

    for name in agent_eval.__all__:
        assert getattr(agent_eval, name).__doc__, name


@pytest.mark.parametrize("path", [*LIBRARY, *CONSUMERS], ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_stay_small(path: pathlib.Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.stem not in BANNED
    assert text.count("\n") <= MAX_LINES
    tree = tree_of(path)
    assert ast.get_docstring(tree), "a module says what it owns"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < MAX_FUNCTION_LINES, f"{node.name} at line {node.lineno}"


def test_a_module_that_only_parses_starts_nothing_heavy() -> None:
    """What ``--help`` imports is checked by name: start-up is part of the interface."""
    import subprocess

    code = "import sys; from agent_eval.cli.main import main; main(['--help']); print(sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    heavy = {"argparse", "subprocess", "ctypes", "hashlib", "json", "tempfile", "shutil", "asyncio", "socket"}
    loaded = set(ast.literal_eval(done.stderr))
    assert not loaded & heavy
