"""One trial's own drawing of a case: files, instruction, expectations, secrets.

Owns what is drawn per trial from the system's randomness. The draw is a function of
the case and of two seeds that only the harness knows until the trial is over, so that
an auditor can lay out the same workspace again from ``trial.json``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .draws import derive, draw_group
from .templates import TemplateError, render_text, render_value

CASE_FORMAT = "core-agent-case/1"


@dataclass(frozen=True, slots=True)
class Trial:
    """What fixes a trial's drawing. ``late_seed`` draws what not even the harness knows while the subject runs."""

    scenario_seed: bytes
    late_seed: bytes | None
    witness_path: str

    @classmethod
    def drawn(cls, witness_path: str) -> Trial:
        """A new one, from the system's randomness; the late part is not drawn yet."""
        return cls(os.urandom(32), None, witness_path)

    def with_late_seed(self) -> Trial:
        """The same with the late part drawn now."""
        return Trial(self.scenario_seed, os.urandom(32), self.witness_path)

    def to_json(self) -> dict[str, object]:
        """For ``revealed`` in ``trial.json``."""
        late = self.late_seed.hex() if self.late_seed is not None else None
        return {"scenario_seed": self.scenario_seed.hex(), "late_seed": late, "witness_path": self.witness_path}

    @classmethod
    def from_json(cls, value: Mapping[str, object]) -> Trial:
        """What :meth:`to_json` wrote. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        late = value["late_seed"]
        seed = bytes.fromhex(value["scenario_seed"])
        return cls(seed, None if late is None else bytes.fromhex(late), str(value["witness_path"]))


@dataclass(frozen=True, slots=True)
class LaidOutFile:
    """A file of the workspace as the subject finds it."""

    path: str
    data: bytes
    mode: int


@dataclass(frozen=True, slots=True)
class Realised:
    """A case with a trial's values filled in. ``values`` has the roots ``v``, ``s``, ``witness`` and, once drawn, ``late``."""

    values: Mapping[str, object]
    instruction: str
    files: tuple[LaidOutFile, ...]
    expect: list
    canary: str | None
    witness_rules: list
    hidden_inputs: Mapping[str, object] | None
    hidden_spec: Mapping[str, object] | None


def realise(case: Mapping[str, object], trial: Trial) -> Realised:
    """Fill in ``case``. Raises ``DrawError`` or ``TemplateError`` when the case does not hold together."""
    values: dict[str, object] = {"v": case["v"], "witness": {"path": trial.witness_path}}
    values["s"] = draw_group(case.get("secrets", {}), "s", derive(trial.scenario_seed, "secrets"), values)
    hidden = case.get("hidden_check")
    hidden_inputs = hidden_spec = None
    if hidden is not None and trial.late_seed is not None:
        values["late"] = draw_group(hidden["late"], "late", derive(trial.late_seed, "late"), values)
        hidden_inputs = render_value(hidden["inputs"], values)
        hidden_spec = render_value(hidden["spec"], values)
    canary = case.get("canary")
    return Realised(
        values=values,
        instruction=render_text(case["instruction"], values),
        files=tuple(file for item in case["files"] for file in _lay_out(item, values)),
        expect=render_value(case["expect"], values),
        canary=None if canary is None else render_text(canary, values),
        witness_rules=render_value(case.get("witness", {}).get("rules", []), values),
        hidden_inputs=hidden_inputs,
        hidden_spec=hidden_spec,
    )


def _lay_out(item: Mapping[str, object], values: Mapping[str, object]) -> list[LaidOutFile]:
    if "each" not in item:
        return [_file(item, values)]
    items = render_value(item["each"], values)
    if not isinstance(items, list):
        raise TemplateError(f"files: {item['each']!r} is no list")
    return [_file(item, {**values, "item": each}) for each in items]


def is_inside(path: str) -> bool:
    """Whether ``path`` is relative, without empty, ``.`` or ``..`` components."""
    return bool(path) and "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))


def _file(item: Mapping[str, object], values: Mapping[str, object]) -> LaidOutFile:
    text, path = render_text(item["text"], values), render_text(item["path"], values)
    if not is_inside(path):
        raise TemplateError(f"files: {path!r} is not a relative path inside the workspace")
    return LaidOutFile(path, text.encode("utf-8"), int(item.get("mode", "0644"), 8))


def lay_out(files: tuple[LaidOutFile, ...], root: str) -> None:
    """Write ``files`` below the new folder ``root``, with exact modes whatever the umask. Raises ``OSError``."""
    os.mkdir(root, 0o700)
    for file in files:
        path = os.path.join(root, file.path)
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(file.data)
            os.fchmod(stream.fileno(), file.mode)
