"""An in-toto Statement v1 with the test-result predicate v0.1, unsigned.

Owns the mapping of a run to it, after the published specifications (in-toto/attestation, ``spec/v1/statement.md``,
``spec/predicates/test-result.md``). Whoever signs the statement or the seal vouches for the run; this
module makes no signature.

What the predicate has no word for is mapped so that it can never help: ``result`` is ``PASSED`` or ``WARNED`` only
when every planned trial passed (``WARNED``, and the trial in ``warnedTests``, when one left processes behind). A shard or a rerun
planned only part of a plan: the annotations of ``plan.json`` say so under ``part``.
Void, interrupted and unrun trials are in none of its three lists; they are named beside the counts, as annotations of
the manifest's descriptor in ``configuration``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agent_eval.evidence import layout
from agent_eval.records import strict_json
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.report.parts_text import part_text
from agent_eval.report.records_view import COUNTS, RunRecords, mapping, read_run, sequence

if TYPE_CHECKING:
    from agent_eval.evidence.reader import EvidenceReader

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
_REDRAWN = ("rerun_after_interrupt", "rerun_after_unrun")
_SHA256 = re.compile("[0-9a-f]{64}")


def statement(reader: EvidenceReader) -> bytes:
    """The statement in canonical JSON with an end of line.

    Raises :class:`InvalidInput` for an unsealed directory or one that holds no digest of what was tested;
    :class:`EvidenceFault` for a record that is not of this format.
    """
    if reader.seal is None:
        raise InvalidInput.one(reader.path, "unsealed: there is no seal to attest", "attest a sealed directory")
    run = read_run(reader)
    subjects = _subjects(reader, run)
    if not subjects:
        raise InvalidInput.one(reader.path, "holds no digest of what was tested", "attest the run that this directory came from")
    value = {
        "_type": STATEMENT_TYPE,
        "subject": subjects,
        "predicateType": PREDICATE_TYPE,
        "predicate": _predicate(reader, run),
    }
    return strict_json.canonical(value) + b"\n"


def _subjects(reader: EvidenceReader, run: RunRecords) -> list[dict[str, object]]:
    """The binary and the identity files, each digest once, with unique names as the specification asks."""
    by_digest: dict[str, str] = {}
    for name, digest in _digests(run.plan.get("subject"), "subject"):
        by_digest.setdefault(digest, name)
    for trial in reader.trials():
        identity = mapping(trial.record.get("identity"))
        for item in sequence(identity.get("before")):
            for name, digest in _digests(item, "identity"):
                by_digest.setdefault(digest, name)
    names: dict[str, int] = {}
    subjects: list[dict[str, object]] = []
    for digest, name in sorted(by_digest.items(), key=lambda item: (item[1], item[0])):
        names[name] = names.get(name, 0) + 1
        unique = name if names[name] == 1 else f"{name} ({names[name]})"
        subjects.append({"name": unique, "digest": {"sha256": digest}})
    return subjects


def _digests(value: object, name: str) -> Iterator[tuple[str, str]]:
    """Every object with a ``sha256`` below ``value``, named by its ``path`` or by the key that leads to it."""
    if isinstance(value, Mapping):
        digest = value.get("sha256")
        if isinstance(digest, str) and _SHA256.fullmatch(digest):
            yield str(value.get("path") or value.get("name") or name), digest
        for key, item in value.items():
            yield from _digests(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _digests(item, name)


def _predicate(reader: EvidenceReader, run: RunRecords) -> dict[str, object]:
    by_verdict: dict[str, list[str]] = {name: [] for name in ("pass", "fail", "void", "interrupted", "unrun")}
    warned = []
    for line in run.lines:
        if line.verdict == "pass" and (line.leaked or line.unreaped):
            warned.append(line.name)
        else:
            by_verdict[line.verdict].append(line.name)
    whole = run.summary["planned"] > 0 and run.summary["passed"] == run.summary["planned"]
    return {
        "result": ("WARNED" if warned else "PASSED") if whole else "FAILED",
        "configuration": _configuration(reader, run, by_verdict),
        "passedTests": by_verdict["pass"],
        "warnedTests": warned,
        "failedTests": by_verdict["fail"],
    }


def _configuration(reader: EvidenceReader, run: RunRecords, by_verdict: Mapping[str, list[str]]) -> list[dict[str, object]]:
    plan = reader.read(layout.PLAN)
    if plan is None:
        raise EvidenceFault.one(layout.PLAN, "missing")
    counts: dict[str, object] = {name: run.summary[name] for name in (*COUNTS, *_REDRAWN) if name in run.summary}
    named = {f"{name}_tests": by_verdict[name] for name in ("void", "interrupted", "unrun")}
    made = {name: run.plan.get(name) for name in ("run_id", "consumer", "kind", "plan_sha256", "created_at", "evaluator")}
    part = part_text(run.plan)
    made |= {"part": part} if part else {}
    entries: list[dict[str, object]] = [
        {"name": layout.MANIFEST, "digest": {"sha256": reader.seal}, "annotations": {"seal": reader.seal, **counts, **named}},
        {"name": layout.PLAN, "digest": {"sha256": sha256_bytes(plan)}, "annotations": made},
    ]
    for case in run.plan["cases"]:
        name = layout.case_file(case["id"])
        entries.append({"name": name, "digest": {"sha256": sha256_bytes(reader.case_bytes(case["id"]))}})
    return entries
