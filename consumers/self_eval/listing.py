"""What a suite holds and what kinds of assertion there are, as text and as JSON.

Owns these two listings. It judges nothing.
"""

from __future__ import annotations

import json

from agent_eval import receipts

from .suite import Suite


def suite_text(suite: Suite, path: str) -> str:
    """A valid suite in a few lines, with the digest that a receipt binds itself to."""
    required = sum(case.required for case in suite.cases)
    lines = [
        f"{path}: valid",
        f"  {suite.id} revision {suite.revision}: {len(suite.cases)} active cases, {required} required, {len(suite.queued)} queued",
        f"  digest {suite.sha256}",
        *(f"  cannot exercise: {text}" for text in suite.cannot_exercise),
        *(f"  warning: {text}" for text in suite.warnings),
    ]
    return "\n".join(lines)


def suite_json(suite: Suite, path: str) -> str:
    """The same as JSON, with the cases."""
    value = {
        "path": path,
        "valid": True,
        "id": suite.id,
        "revision": suite.revision,
        "sha256": suite.sha256,
        "cases": [{"id": case.id, "kind": case.kind, "required": case.required, "why": case.why} for case in suite.cases],
        "queued": list(suite.queued),
        "cannot_exercise": list(suite.cannot_exercise),
        "contracts": sorted(suite.contracts),
        "warnings": list(suite.warnings),
    }
    return json.dumps(value, sort_keys=True)


def kinds_text() -> str:
    """Every kind with its fields."""
    blocks = []
    for kind in receipts.kinds():
        lines = [f"{kind.name}: {kind.summary}"]
        for name, field in kind.fields.items():
            need = "required" if field.required else "optional" if field.default is None else f"default: {json.dumps(field.default)}"
            lines.append(f"    {name} ({need}): {field.summary}; {field.form.name}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def kinds_json() -> str:
    """The same as JSON."""
    value = [
        {
            "kind": kind.name,
            "summary": kind.summary,
            "fields": {
                name: {"required": field.required, "default": field.default, "summary": field.summary, "value": field.form.name}
                for name, field in kind.fields.items()
            },
        }
        for kind in receipts.kinds()
    ]
    return json.dumps(value, sort_keys=True)
