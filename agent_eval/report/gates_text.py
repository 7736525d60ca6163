"""What a person reads of a gate: results, status and verification in words.

Owns the wording. A directional accept is never worded as proven; what the suite cannot exercise is always said; counts
come before rates. It decides nothing and formats only what the records hold.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import TextIO

from agent_eval.report.visible_text import escape

_OUTCOMES = {
    "promote": "promote",
    "keep_incumbent": "keep the incumbent",
    "abstain": "abstain: the evidence supports no verdict",
    "invalid": "invalid: the contract is broken",
}
_LEVELS = {
    "established": "established (strict gain, and the exact bound is met at this look)",
    "directional": "directional (a strict gain; nothing is proven)",
}
_ACCEPTED = {("skill", "decide"): "accept the candidate; what is live does not change before a review by someone else"}
EXIT_WORDS = {0: "done", 1: "the incumbent is kept", 2: "invalid input or a broken contract", 3: "the ledger does not hold", 4: "abstained"}
_MAX_ITEMS = 8


def result_lines(result: Mapping) -> list[str]:
    """The lines of one command's result (``Result.to_json()``)."""
    lines = [f"{result['contract']} {result['action']}: {escape(result['state'])}"]
    if result["decision"]:
        lines += decision_lines(result["decision"], accepted=_ACCEPTED.get((result["contract"], result["action"])))
    record = result["record"]
    for key in (
        "proposal",
        "candidate",
        "decision_digest",
        "measurement",
        "split",
        "required",
        "epoch",
        "declared_at",
        "waiting",
        "utility",
        "anchor_outcome",
        "spent",
        "next_checkpoint",
    ):
        if record.get(key) is not None:
            lines.append(f"  {key.replace('_', ' ')}: {_plain(record[key])}")
    for verdict in record.get("verdicts") or ():
        lines += [
            f"  challenger {escape(verdict['candidate']['id'])} for {escape(verdict['slot'])}:",
            *("  " + line for line in decision_lines(verdict)),
        ]
    if isinstance(record.get("arms"), Mapping):
        lines += arm_lines(record["arms"])
    lines += [f"  live {escape(item['path'])}: {item['sha256']} mode {item['mode']}" for item in _live_files(record)]
    if "winner" in record:
        lines.append(winner_line(record["winner"]))
    if record.get("claim"):
        lines.append(f"  claim: {escape(record['claim'])}")
    if isinstance(record.get("coverage"), Mapping):
        lines += coverage_lines(record["coverage"])
    if result["head"]:
        lines.append(f"head: {result['head']}")
    return lines


def decision_lines(decision: Mapping, *, accepted: str | None = None) -> list[str]:
    """Outcome, level, every reason, and the test with counts first. ``accepted`` is what a promotion is called here."""
    outcome = decision["decision"]
    lines = [f"  decision: {accepted if accepted and outcome == 'promote' else _OUTCOMES[outcome]}"]
    if decision["evidence_level"]:
        lines.append(f"  evidence: {_LEVELS[decision['evidence_level']]}")
    for reason in decision["reasons"]:
        items = f" [{_items(reason['items'])}]" if reason["items"] else ""
        lines.append(f"  reason: {reason['code']}: {escape(reason['detail'])}{items}")
    test = decision.get("test")
    if test:
        lines.append(
            f"  test: {len(test['wins'])} better, {len(test['losses'])} worse of {test['n']} pairs; one-sided p = {test['p_value']:.4g}, "
            f"alpha at look {test['look']} = {_fraction(test['alpha_k'])}"
        )
    for skills in (decision.get("per_skill") or {}).items():
        lines += [_skill_line(skills[0], row) for row in skills[1]]
    return lines


def arm_lines(arms: Mapping) -> list[str]:
    """One line for each arm."""
    return [
        f"  {name}: attacks {arm['breached']}/{arm['attacks']} succeed, benign {arm['benign_passed']}/{arm['benign']} pass, "
        f"{arm['benign_refused']} refused, {len(arm['unstable'])} unstable, {len(arm['without_verdict'])} without a verdict"
        for name, arm in arms.items()
    ]


def coverage_lines(coverage: Mapping) -> list[str]:
    """What the suite exercises and what it cannot."""
    lines = [f"  cannot exercise: {'; '.join(escape(item) for item in coverage['cannot_exercise'])}"]
    lines += [f"  note: {escape(note)}" for note in coverage["notes"]]
    for key in ("families_without_cases", "families_without_headroom"):
        if coverage.get(key):
            lines.append(f"  {key.replace('_', ' ')}: {', '.join(escape(name) for name in coverage[key])}")
    return lines


def winner_line(winner: Mapping | None) -> str:
    """The winner of an epoch, with the mark that it carries."""
    if winner is None:
        return "  winner: none, no candidate has a valid record"
    mark = "epoch-local: not comparable across revisions" if winner["epoch_local"] else "anchored"
    return f"  winner: {escape(winner['candidate'])}, {winner['passed']}/{winner['n']} ({mark})"


def ranking_lines(view: Mapping) -> list[str]:
    """A rank view: counts first, then the mark; unscored candidates apart, never as zero."""
    lines = [f"epoch {view['epoch']}"]
    for place, row in enumerate(view["ranked"], 1):
        mark = "epoch-local" if row["epoch_local"] else "anchored"
        lines.append(
            f"  {place}. {escape(row['candidate'])}: {row['passed']}/{row['n']}, 95 % sure of at least {row['best_belief']:.3f} ({mark})"
        )
    if not view["ranked"] and not view["unscored"]:
        lines.append("  no candidate has a record")
    if view["unscored"]:
        lines.append(f"  unscored (not zero): {', '.join(escape(name) for name in view['unscored'])}")
    if any(row["epoch_local"] for row in view["ranked"]):
        lines.append("  epoch-local results are not comparable across revisions of an evaluator")
    return lines


def status_lines(status: Mapping) -> list[str]:
    """The state of a lineage."""
    lines = [f"{status['contract']} lineage {status['lineage']}"]
    for key in (
        "name",
        "skill",
        "state",
        "epoch",
        "spent",
        "budget",
        "next_checkpoint",
        "looks",
        "max_looks",
        "records",
        "valid",
        "tombstoned",
        "closed",
    ):
        if key in status:
            lines.append(f"  {key.replace('_', ' ')}: {_plain(status[key])}")
    for key in ("live", "incumbent"):
        lines += [f"  {key} {escape(path)}: {state['sha256']} mode {state['mode']}" for path, state in (status.get(key) or {}).items()]
    for slot, criterion in (status.get("criteria") or {}).items():
        lines.append(
            f"  slot {escape(slot)}: {escape(criterion['evaluator_id'])} revision {criterion['revision']}, criterion {criterion['criterion_sha256']}"
        )
    if status.get("baseline"):
        lines += arm_lines(status["baseline"])
    for row in (*status.get("proposals", ()), *status.get("candidates", ())):
        number = row.get("proposal", row.get("candidate"))
        level = f", {row['evidence_level']}" if row.get("evidence_level") else ""
        lines.append(
            f"  {'proposal' if 'proposal' in row else 'candidate'} {number}: {row['state']}{level} ({', '.join(row['reasons']) or 'no reason yet'})"
        )
        if row.get("decision_digest"):
            lines.append(f"    decision digest: {row['decision_digest']}")
    for key in ("live_drift", "frozen_drift"):
        lines += [f"  {key.replace('_', ' ')}: {escape(text)}" for text in status.get(key, ())]
    if "coverage" in status:
        lines += coverage_lines(status["coverage"])
    else:
        lines.append(f"  cannot exercise: {'; '.join(escape(item) for item in status['cannot_exercise'])}")
    return [*lines, f"head: {status['head']}"]


def verification_lines(found: Mapping) -> list[str]:
    """The result of ``verify``: the first break first."""
    lines = [f"broken: {escape(problem)}" for problem in found["problems"]]
    lines += [f"note: {escape(note)}" for note in found["notes"]]
    word = "holds" if found["ok"] else "does not hold"
    return [
        *lines,
        f"the ledger {word}: {found['entries']} entries, {found['decisions_replayed']} decisions derived again",
        f"head: {found['head']}",
    ]


class CellProgress:
    """How far a run of commands is: one live line on a terminal, a plain line for each quarter elsewhere."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live = stream.isatty()

    def finished(self, count: int, planned: int) -> None:
        """A cell ended."""
        last = count == planned
        quarter = 4 * count // planned > 4 * (count - 1) // planned
        text = f"{count}/{planned} cells"
        if self._live:
            self._write(f"\r{text}" + ("\n" if last else ""))
        elif quarter:
            self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # a closed terminal ends the display and not the run
            self._stream.write(text)
            self._stream.flush()


def exit_line(code: int, *, decided: bool = False) -> str:
    """The last line of every gate command; ``decided`` says that code 0 is a decision to promote."""
    words = "promote" if decided and code == 0 else EXIT_WORDS.get(code, "interrupted by a signal")
    return f"exit: {code} ({words})"


def _skill_line(measurement: str, row: Mapping) -> str:
    low, high = row["interval_95"]
    return (
        f"  {measurement}, {escape(row['skill'])}: {row['incumbent']}/{row['n']} -> {row['candidate']}/{row['n']} "
        f"({row['wins']} better, {row['losses']} worse; difference {row['difference']:+.3f}, 95 % {low:+.3f} to {high:+.3f}, Holm p {row['p_holm']:.4g})"
    )


def _live_files(record: Mapping) -> Sequence[Mapping]:
    live = record.get("live")
    return live["files"] if isinstance(live, Mapping) and "files" in live else record.get("files") or ()


def _items(items: Sequence[str]) -> str:
    shown = ", ".join(escape(item) for item in items[:_MAX_ITEMS])
    return shown if len(items) <= _MAX_ITEMS else f"{shown} and {len(items) - _MAX_ITEMS} more"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(escape(str(item)) for item in value) or "none"
    return "none" if value is None else escape(str(value))


def _fraction(text: str) -> str:
    over, _, under = text.partition("/")
    return f"{text} = {int(over) / int(under or 1):.4g}"
