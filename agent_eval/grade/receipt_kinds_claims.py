"""Receipt assertions about words and what stands behind them: notes, claims, judges.

Owns ``note_present``, ``claim_backed`` and ``judge_binary``. A note is what the agent says about
itself: it can be required, and it never proves anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from agent_eval.records.problems import Problem

from .engine import Check, Evidence, Finding, Spec, failed, not_applicable, passed, register, unsupported
from .fields import COUNT, POINTER, REGEX, TEXT, Field, choice
from .matchers import COMMAND, EVENT, Sifted, Test, command_needs, command_test, event_needs, event_test
from .patterns import compile_regex
from .receipt_base import ReceiptKind, tokens_of
from .receipt_kinds_record import values_at


@register
class NotePresent(ReceiptKind):
    """A note says something of a certain length or form. Make it advisory, or join it with evidence."""

    name = "note_present"
    summary = "passes when a note matches the regex and has at least minChars characters"
    sections: ClassVar[tuple[str, ...]] = ("notes",)
    fields: ClassVar[Mapping[str, Field]] = {
        "regex": Field(REGEX, "some part of the note matches"),
        "minChars": Field(COUNT, "how long it is at least, without outer blanks", default=1),
    }

    def decide(self, spec: Spec) -> Check:
        pattern = compile_regex(spec["regex"]) if "regex" in spec else None
        least = spec.get("minChars", 1)

        def check(evidence: Evidence) -> Finding:
            for index, note in enumerate(evidence["notes"]):
                if len(note.strip()) >= least and (pattern is None or pattern.search(note)):
                    return passed("a note says so", f"/notes/{index}")
            return failed("no such note", "/notes")

        return check


@register
class ClaimBacked(ReceiptKind):
    """Words need a record: "tests pass" needs a test command that passed."""

    name = "claim_backed"
    summary = "passes when each claim has a record of the stated kind; not applicable when nothing is claimed"
    fields: ClassVar[Mapping[str, Field]] = {
        "claimPath": Field(POINTER, "where claims stand", default="/notes/*"),
        "claimRegex": Field(REGEX, "some part of the text is the claim", default="any text there"),
        "byKind": Field(choice("command", "event", "artifact"), "what backs it", required=True),
        "cmd": Field(COMMAND, "the command, which must have ended with exit code 0", default="any command with exit code 0"),
        "event": Field(EVENT, "the event", default="any event"),
        "role": Field(TEXT, "the role of the artifact", default="any artifact with a sha256"),
    }

    def problems(self, spec: Spec, where: str) -> list[Problem]:
        by = {"command": "cmd", "event": "event", "artifact": "role"}
        return [
            Problem(f"{where}/{field}", f"goes with byKind {kind}")
            for kind, field in by.items()
            if field in spec and spec["byKind"] != kind
        ]

    def sections_of(self, spec: Spec) -> tuple[str, ...]:
        return tokens_of(spec.get("claimPath", "/notes/*"))[:1]

    def needs(self, spec: Spec) -> tuple[str, ...]:
        # An absent list backs nothing and is a fail; a redacted one might, and is missing.
        backing = {
            "command": command_needs(spec.get("cmd", ""), exit_code=True),
            "event": event_needs(spec.get("event", {})),
            "artifact": ("/artifacts/*/sha256", "/artifacts/*/role"),
        }
        return (spec.get("claimPath", "/notes/*"), *backing[spec["byKind"]])

    def decide(self, spec: Spec) -> Check:
        pattern = compile_regex(spec["claimRegex"]) if "claimRegex" in spec else None
        path = spec.get("claimPath", "/notes/*")
        backing = _backing(spec)

        def check(evidence: Evidence) -> Finding:
            claims = [
                place
                for place, value in values_at(evidence, path)
                if isinstance(value, str) and value.strip() and (pattern is None or pattern.search(value))
            ]
            if not claims:
                return not_applicable("nothing is claimed", path.partition("/*")[0])
            proof = backing(evidence)
            if proof is None:
                # Not "missing": the claim is evidence, and that nothing backs it is the finding.
                return failed(f"claimed without a record of a {spec['byKind']} that shows it", *claims, reason="unbacked_claim")
            return passed("the claim has its record", *claims, proof)

        return check


def _backing(spec: Spec) -> Callable[[Evidence], str | None]:
    """The pointer to what backs a claim, as a function of the evidence; ``None`` when nothing does."""
    kind = spec["byKind"]
    section = {"command": "commands", "event": "events", "artifact": "artifacts"}[kind]
    if kind == "command":
        matches = command_test(spec["cmd"]) if "cmd" in spec else lambda item: True
    elif kind == "event":
        matches = event_test(spec["event"]) if "event" in spec else lambda item: True
    else:
        matches = _artifact_test(spec.get("role"))

    def find(evidence: Evidence) -> str | None:
        items = evidence.get(section)
        if not isinstance(items, list):
            return None
        hits = Sifted(section, matches, items).hits
        # The last run decides: a green run before a red one does not back a claim.
        if kind == "command":
            hits = [hits[-1]] if hits and items[hits[-1]].get("exitCode") == 0 else []
        return f"/{section}/{hits[-1]}" if hits else None

    return find


def _artifact_test(role: object) -> Test:
    return lambda artifact: "sha256" in artifact and role in (None, artifact.get("role"))


@register
class JudgeBinary(ReceiptKind):
    """A question that only a judge can answer. Offline there is none, and that is never a pass."""

    name = "judge_binary"
    summary = "unsupported offline: it takes a recorded verdict of a validated judge"
    fields: ClassVar[Mapping[str, Field]] = {
        "question": Field(TEXT, "one yes-or-no question", required=True),
        "judgeRef": Field(TEXT, "the validation record of the judge", required=True),
    }

    def decide(self, spec: Spec) -> Check:
        finding = unsupported("no verdict of a validated judge is recorded; deterministic scoring cannot decide it", "")
        return lambda evidence: finding
