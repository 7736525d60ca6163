"""Every numbered negative of the evaluator epochs (E1 to E29), and that a genuine improvement is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_eval.cli.main import main
from agent_eval.gates import lineage as lineages
from agent_eval.gates.audit import verify
from agent_eval.gates.decision import Decision, Level, Outcome
from agent_eval.gates.epoch import config, gate, ranking, replay, transition, verdict
from agent_eval.gates.ledger import Ledger
from agent_eval.records.problems import EvidenceFault, InvalidInput
from tests.gates.epoch_world import EpochWorld, item
from tests.gates.unsynced import FAST

GOOD, BAD = {0, 1}, set(range(10))
RULE = {"alpha": 0.05, "evidence": "established", "min_per_class": 5, "min_discordant": 0, "delta": 0}


@pytest.fixture
def world(tmp_path: Path) -> EpochWorld:
    return EpochWorld(tmp_path)


def items(count: int = 40, **changes: object) -> tuple[config.Item, ...]:
    return tuple(config.Item(f"item-{n:03d}", f"text {n}", n % 2, "panel", False) for n in range(count))


def outcomes(anchor: tuple[config.Item, ...], mistakes: set[int], repeats: int = 1) -> dict:
    return {(it.id, r): (1 - it.label if n in mistakes else it.label) for n, it in enumerate(anchor) for r in range(1, repeats + 1)}


def compare(incumbent: set[int], challenger: set[int], *, count: int = 40, look: int = 1, challengers: int = 1, **rule: object) -> Decision:
    anchor = items(count)
    question = verdict.Question(anchor, 1, "all-pass", {**RULE, **rule}, look, challengers)
    return verdict.compare(question, outcomes(anchor, incumbent), outcomes(anchor, challenger))


def fault(world: EpochWorld, kind: str, body: dict) -> list[str]:
    """The problems of a ledger to which an entry was added that no command would write."""
    ledger = Ledger(world.ledger, FAST)
    ledger.open()
    ledger.append(kind, "somebody", body)
    return [str(problem) for problem in verify(world.ledger, "epoch").problems]


def test_a_genuine_improvement_is_promoted_into_a_new_epoch(world: EpochWorld) -> None:
    before = world.at_checkpoint(BAD, GOOD).state()
    result = world.decide()
    after = world.state()
    assert result.decision.outcome is Outcome.PROMOTE and result.decision.level is Level.ESTABLISHED
    assert (before.epoch, after.epoch) == (1, 2)
    assert after.criteria["reviewer"]["revision"] == 2
    assert verify(world.ledger, "epoch").ok


def test_E01_promotion_only_at_a_declared_checkpoint(world: EpochWorld) -> None:
    world.open()
    world.queue()
    world.score(world.incumbent(), BAD)
    world.score(world.digest(), GOOD)
    assert gate.checkpoint(world.ledger, "pia", files=FAST).decision.codes == ("checkpoint_not_reached",)
    assert world.decide().decision.codes == ("no_checkpoint",)
    assert world.state().epoch == 1


def test_E02_checkpoints_moved_after_scores_were_seen(world: EpochWorld) -> None:
    world.open()
    world.queue()
    world.score(world.digest(), GOOD)
    world.config["checkpoints"] = [1, 4]
    world.write()
    result = gate.checkpoint(world.ledger, "pia", files=FAST)
    assert result.decision.outcome is Outcome.INVALID and result.decision.codes == ("frozen_changed",)
    assert world.decide().decision.codes == ("lineage_closed",)


@pytest.mark.parametrize(
    ("proposer", "acceptor", "shared"),
    [({"name": "pia"}, {"name": "PIA"}, "name"), ({"name": "a", "key": "k1"}, {"name": "b", "key": "k1"}, "key"), ({"name": "a", "process": "m-1"}, {"name": "b", "process": "m-1"}, "process")],
)
def test_E03_proposer_and_acceptor_share_an_identity(world: EpochWorld, proposer: dict, acceptor: dict, shared: str) -> None:
    world.config |= {"proposer": proposer, "acceptor": acceptor}
    with pytest.raises(InvalidInput, match=f"same {shared} as the proposer"):
        world.open()


def test_E03_acceptor_authored_or_queued_the_challenger_or_is_somebody_else(world: EpochWorld) -> None:
    world.open()
    assert world.queue(world.challenger(author="ALMA")).decision.codes == ("acceptor_is_author",)
    assert world.queue(actor="ALMA").decision.codes == ("acceptor_is_proposer",)
    world.utilities({"agent-a": [1, 1, 1, 1]})
    gate.checkpoint(world.ledger, "pia", files=FAST)
    assert world.decide("pia").decision.codes == ("not_the_acceptor",)


@pytest.mark.parametrize("change", ["label", "text", "order", "bytes"])
def test_E04_anchor_bytes_or_labels_changed(world: EpochWorld, change: str) -> None:
    world.at_checkpoint(BAD, GOOD)
    anchor = world.folder / "anchor.jsonl"
    data = anchor.read_bytes()
    replaced = {
        "label": data.replace(b'"label": 1', b'"label": 0', 1), "text": data.replace(b"letter", b"latter", 1),
        "order": b"".join(reversed(data.splitlines(keepends=True))), "bytes": data + b"\n",
    }[change]
    anchor.write_bytes(replaced)
    assert world.decide().decision.codes == ("frozen_changed",)


def test_E05_anchor_missing_fails_closed(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD)
    (world.folder / "anchor.jsonl").unlink()
    assert world.decide().decision.outcome is Outcome.INVALID


def test_E05_anchor_blob_missing_fails_closed(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD)
    digest = world.state().criteria["reviewer"]["anchor_sha256"]
    Path(world.ledger, "blobs", "sha256", digest).unlink()
    with pytest.raises(EvidenceFault):
        world.decide()


def test_E06_scored_on_different_items(world: EpochWorld) -> None:
    result = world.at_checkpoint(BAD, GOOD, absent={38, 39}).decide()
    assert result.decision.outcome is Outcome.ABSTAIN and result.decision.codes == ("challenger_unscored", "unequal_coverage")


def test_E06_scored_with_different_repeats(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path, anchor={"id": "anchor", "revision": 1, "file": "anchor.jsonl", "repeats": 2})
    result = world.at_checkpoint(BAD, GOOD, repeats=2).decide()  # the incumbent has one repeat
    assert result.decision.outcome is Outcome.ABSTAIN and "incumbent_unscored" in result.decision.codes


def test_E07_unscored_incumbent_does_not_lose(world: EpochWorld) -> None:
    world.open()
    world.utilities({"agent-a": [1, 1, 1, 1]})
    world.queue()
    world.score(world.incumbent(), set(), absent=set(range(4, 40)))
    world.score(world.digest(), set(range(36)))
    gate.checkpoint(world.ledger, "pia", files=FAST)
    result = world.decide()
    assert result.decision.outcome is Outcome.ABSTAIN and "incumbent_unscored" in result.decision.codes
    assert world.state().epoch == 1


def test_E08_missing_verdict_counts_against_its_evaluator(world: EpochWorld) -> None:
    result = world.at_checkpoint(BAD, set(), missing=set(range(10, 18))).decide()
    assert len(result.decision.test.losses) == 8
    assert result.decision.outcome is Outcome.KEEP


def test_E09_tie_keeps() -> None:
    assert compare({0, 1, 2}, {3, 4, 5}).codes[0] == "tie"
    assert compare({0, 1, 2}, {0, 1, 2}).codes == ("tie",)


def test_E10_point_gain_but_bound_not_met() -> None:
    decision = compare(set(range(10)), set(range(9)), count=50)  # 41/50 against 40/50
    assert decision.codes == ("not_established",) and decision.test.more_clean_wins() == 5


@pytest.mark.parametrize(("look", "needed"), [(1, 6), (2, 7), (3, 8), (5, 10), (10, 12), (20, 14)])
def test_E10_clean_wins_needed_at_each_look(look: int, needed: int) -> None:
    assert compare(set(range(needed)), set(), look=look).outcome is Outcome.PROMOTE
    assert compare(set(range(needed - 1)), set(), look=look).codes == ("not_established",)


def test_E11_lenient_evaluator_on_an_imbalanced_anchor() -> None:
    anchor = tuple(config.Item(f"i{n}", f"t{n}", int(n >= 6), "panel", False) for n in range(60))  # 54 positive, 6 negative
    question = verdict.Question(anchor, 1, "all-pass", RULE, 1, 1)
    strict, lenient = outcomes(anchor, set(range(10, 30))), outcomes(anchor, {0, 1, 2, 3, 4, 5})  # passes everything
    decision = verdict.compare(question, strict, lenient)
    assert decision.outcome is Outcome.KEEP and decision.codes == ("tnr_down",)
    assert decision.detail["rates"]["challenger"] == {"positive": 54, "true_positive": 54, "negative": 6, "true_negative": 0}


@pytest.mark.parametrize(("negatives", "code"), [(0, "single_class"), (4, "class_below_minimum")])
def test_E12_single_class_or_too_few_of_one(negatives: int, code: str) -> None:
    anchor = tuple(config.Item(f"i{n}", f"t{n}", int(n >= negatives), "panel", False) for n in range(30))
    decision = verdict.compare(verdict.Question(anchor, 1, "all-pass", RULE, 1, 1), outcomes(anchor, BAD), outcomes(anchor, set()))
    assert decision.outcome is Outcome.ABSTAIN and code in decision.codes


def test_E13_labels_by_an_evaluator_of_the_comparison(world: EpochWorld) -> None:
    world.items[3]["labelled_by"] = "Reviewer"
    with pytest.raises(InvalidInput, match="labels come from"):
        world.open()
    world.items[3]["labelled_by"] = "sage"
    world.open()
    assert "evaluator_dependent_anchor" in world.queue(world.challenger("sage", 1)).decision.codes


@pytest.mark.parametrize("leak", ["Example: answer 7 on the quilt that a person marked", "see item-007", "attached"])
def test_E14_anchor_item_in_the_challenger_or_what_it_brings(world: EpochWorld, leak: str) -> None:
    queued = world.challenger(text=None if leak == "attached" else leak)
    if leak == "attached":
        world.write()
        (world.folder / "few-shots.txt").write_text("Q: " + item(4)["text"])
        queued["attachments"] = ["few-shots.txt"]
    result = world.at_checkpoint(BAD, GOOD, queued=queued).decide()
    assert result.decision.outcome is Outcome.ABSTAIN and result.decision.codes == ("leakage",)


def test_E15_more_than_the_evaluator_changed(world: EpochWorld) -> None:
    world.open()
    assert world.queue(world.challenger(changes=["evaluator", "skill"])).decision.codes == ("confounded",)
    world.queue()
    rows = world.anchor_rows(world.digest(), GOOD)
    rows[0]["protocol_sha256"] = "9" * 64
    assert gate.record(world.ledger, world.rows("r.jsonl", rows), "pia").decision.codes == ("confounded",)


@pytest.mark.parametrize("value", ["true", "false", "0.5", '"1"', "2", "-1", "1.0"])
def test_E16_non_binary_outcome(world: EpochWorld, value: str) -> None:
    world.open()
    row = {"type": "utility", "candidate": "a", "task": "t", "outcome": 7, "deps": {"reviewer": world.criterion()}, "artifact_sha256": "a" * 64}
    path = world.folder / "r.jsonl"
    path.write_text(json.dumps(row).replace(": 7", f": {value}"))
    with pytest.raises(InvalidInput, match="must be 0 or 1"):
        gate.record(world.ledger, str(path), "pia")


def test_E17_stale_records_are_not_ranked_and_not_recorded(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD)
    old = world.criterion()
    world.decide()
    view = ranking.view(world.state())
    assert view["ranked"] == [] and view["unscored"] == ["agent-a", "agent-b"]
    row = {"type": "utility", "candidate": "agent-a", "task": "t", "outcome": 1, "deps": {"reviewer": old}, "artifact_sha256": "a" * 64}
    assert gate.record(world.ledger, world.rows("r.jsonl", [row]), "pia").decision.codes == ("stale_criterion",)


def two_slots(tmp_path: Path) -> EpochWorld:
    world = EpochWorld(tmp_path, slots=("reviewer", "tester")).open()
    world.utilities({"agent-a": [1, 0]}, slots=("reviewer",))
    world.utilities({"agent-a": [1, 1]}, slots=("tester",), start=10)
    world.utilities({"agent-b": [1, 1]}, slots=("reviewer", "tester"))
    world.utilities({"agent-c": [1, 0]}, slots=())
    world.queue()
    world.score(world.incumbent(), BAD)
    world.score(world.digest(), GOOD)
    gate.checkpoint(world.ledger, "pia", files=FAST)
    return world


def test_E18_anchored_and_unrelated_records_stay_valid(tmp_path: Path) -> None:
    world = two_slots(tmp_path)
    world.decide()
    state = world.state()
    assert {(r.candidate, r.slots) for r in state.valid()} == {("agent-a", frozenset({"tester"})), ("agent-c", frozenset())}
    unrelated = next(r.id for r in state.utilities if r.slots == {"tester"})
    lineage = lineages.open_for_reading(world.ledger, "epoch")
    entry = lineage.of_kind("utility_tombstoned")[0]
    lineage.entries[entry.seq] = type(entry)(entry.seq, entry.prev, entry.kind, entry.at, entry.actor, {**entry.body, "records": [*entry.body["records"], unrelated]}, entry.digest)
    assert "do not depend on the displaced evaluator" in str(replay.replay(lineage)[0][0])


def test_E19_dependent_record_left_valid(tmp_path: Path) -> None:
    world = two_slots(tmp_path)
    world.decide()
    lineage = lineages.open_for_reading(world.ledger, "epoch")
    entry = lineage.of_kind("utility_tombstoned")[0]
    assert len(entry.body["records"]) == 4
    lineage.entries[entry.seq] = type(entry)(entry.seq, entry.prev, entry.kind, entry.at, entry.actor, {**entry.body, "records": entry.body["records"][:-1]}, entry.digest)
    assert "leaves 1 records valid" in str(replay.replay(lineage)[0][0])


def test_E20_physical_deletion_of_a_record(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD).decide()
    ledger = Path(world.ledger, "ledger.jsonl")
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(line for line in lines if b'"kind":"utility"' not in line))
    found = verify(world.ledger, "epoch")
    assert not found.ok and "line 3" in str(found.problems[0])
    with pytest.raises(EvidenceFault):
        gate.record(world.ledger, world.rows("r.jsonl", world.anchor_rows("0" * 64, set())), "pia")


def test_E21_epoch_local_winner_is_marked_and_not_compared_across_revisions(world: EpochWorld, capsys: pytest.CaptureFixture[str]) -> None:
    world.at_checkpoint(BAD, GOOD).decide()
    world.utilities({"agent-a": [1, 1]})
    assert main(["epoch", world.ledger, "rank", "--against", "1"]) == 2
    assert "epoch-local" in capsys.readouterr().err
    winner = gate.close(world.ledger, "owner", files=FAST).record["winner"]
    assert winner["epoch_local"] is True and winner["comparable_across_revisions"] is False
    assert main(["epoch", world.ledger, "rank"]) == 0
    assert "(epoch-local)" in capsys.readouterr().out


def test_E21_anchored_results_are_comparable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    world = EpochWorld(tmp_path).open()
    world.utilities({"agent-c": [1, 1], "agent-d": [0, 1]}, slots=())
    world.queue()
    world.score(world.incumbent(), BAD)
    world.score(world.digest(), GOOD)
    gate.checkpoint(world.ledger, "pia", files=FAST)
    world.decide()
    assert main(["epoch", world.ledger, "rank", "--against", "1"]) == 0
    assert gate.close(world.ledger, "owner", files=FAST).record["winner"]["epoch_local"] is False
    assert world.queue().decision.codes == ("closed",)


def test_E21_without_an_anchor_every_winner_is_epoch_local_and_nothing_is_promoted(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path, anchor=None).open()
    world.utilities({"agent-c": [1, 1, 0, 1]}, slots=())
    world.queue()
    gate.checkpoint(world.ledger, "pia", files=FAST)
    assert world.decide().decision.codes == ("no_anchor",)
    assert gate.close(world.ledger, "owner", files=FAST).record["winner"]["epoch_local"] is True


def test_E22_revision_reused_and_same_bytes_under_another_name(world: EpochWorld) -> None:
    world.open()
    world.queue()
    assert "revision_reused" in world.queue(world.challenger(text="other bytes\n")).decision.codes
    incumbent = (world.folder / "reviewer-1.md").read_text()
    assert "same_bytes" in world.queue(world.challenger("sage", 1, incumbent)).decision.codes
    assert "digest_has_other_name" in world.queue(world.challenger("sage", 1, "rubric 2 of reviewer\n")).decision.codes
    world.queue(world.challenger(revision=5))
    assert world.queue(world.challenger(revision=3)).decision.codes == ("revision_not_increasing",)


def test_E23_budget_exceeded_inside_the_epoch(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path, budget={"evaluations": 5}, checkpoints=[4]).open()
    world.utilities({"agent-a": [1, 1, 1, 1]})
    result = world.utilities({"agent-b": [1, 1]})
    assert result.decision.codes == ("budget_exceeded",) and world.state().spent() == 4


def test_E24_look_counter_and_challengers_are_counted(world: EpochWorld) -> None:
    world.open()
    world.utilities({"agent-a": [1] * 8})
    world.score(world.incumbent(), BAD)
    for revision in (2, 3, 4):
        world.queue(world.challenger(revision=revision))
        world.score(world.digest(revision=revision), set(range(4)))
    gate.checkpoint(world.ledger, "pia", files=FAST)
    first = world.decide()  # six clean wins meet 1/40, and three challengers share it
    assert (first.record["look"], first.decision.codes, str(first.decision.test.alpha_k)) == (1, ("not_established",), "1/120")
    world.queue(world.challenger(revision=5))
    world.score(world.digest(revision=5), set(range(4)))
    gate.checkpoint(world.ledger, "pia", files=FAST)
    second = world.decide()
    assert (second.record["look"], str(second.decision.test.alpha_k)) == (2, "1/120")
    body = next(e for e in lineages.open_for_reading(world.ledger, "epoch").of_kind("acceptor_decision")).body
    assert any("turns the look counter back" in p or "does not follow" in p or "open checkpoint" in p for p in fault(world, "acceptor_decision", {**body, "looks_after": 0}))


def test_E24_looks_go_on_after_a_promotion_and_start_at_prior_looks(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path, anchor={"id": "anchor", "revision": 1, "file": "anchor.jsonl", "prior_looks": 2})
    assert world.at_checkpoint(BAD, {0}).decide().record["look"] == 3
    assert world.state().epoch == 2 and world.state().looks == 3


@pytest.mark.parametrize("row", ['{"id": "x", "text": "t", "label": "false", "labelled_by": "p"}', '{"id": "x", "text": "t", "label": true, "labelled_by": "p"}', '{"id": "x", "text": "t"', '{"id": "x", "text": "t", "labelled_by": "p"}', "[]", "null"])
def test_E25_malformed_anchor_row(world: EpochWorld, row: str) -> None:
    path = world.write()
    with (world.folder / "anchor.jsonl").open("a") as stream:
        stream.write(row + "\n")
    with pytest.raises(InvalidInput, match=r"anchor\.jsonl#L41"):
        gate.open_ledger(world.ledger, path, "owner", files=FAST)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999"])
def test_E26_nan_or_infinite_score(world: EpochWorld, value: str) -> None:
    world.open()
    path = world.folder / "r.jsonl"
    path.write_text(json.dumps({"type": "utility", "candidate": "a", "task": "t", "outcome": 7, "deps": {}, "artifact_sha256": "a" * 64}).replace("7", value))
    with pytest.raises(InvalidInput, match="is not a JSON object"):
        gate.record(world.ledger, str(path), "pia")


def test_E27_two_challengers_pass_and_one_is_chosen(world: EpochWorld) -> None:
    world.open()
    world.utilities({"agent-a": [1, 1, 1, 1]})
    world.score(world.incumbent(), set(range(14)))
    for revision, mistakes in ((2, set(range(4))), (3, set(range(2)))):
        world.queue(world.challenger(revision=revision))
        world.score(world.digest(revision=revision), mistakes)
    gate.checkpoint(world.ledger, "pia", files=FAST)
    result = world.decide()
    assert [(v["candidate"]["revision"], v["decision"]) for v in result.record["verdicts"]] == [(2, "keep_incumbent"), (3, "promote")]
    assert result.record["verdicts"][0]["reasons"][0]["code"] == "another_promoted"
    assert world.state().criteria["reviewer"]["revision"] == 3 and world.state().epoch == 2
    assert verify(world.ledger, "epoch").ok


def test_E27_the_choice_is_deterministic() -> None:
    small, large = compare(set(range(8)), set()), compare(set(range(9)), set())
    assert verdict.choose({"a": small, "b": large}) == "b"
    assert verdict.choose({"b": small, "a": small}) == "a"
    assert verdict.choose({"a": compare({1}, {2})}) is None


@pytest.mark.parametrize("steps", [1, 2, 3, 4])
def test_E28_half_a_transition_is_finished_at_the_next_start(world: EpochWorld, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    world.at_checkpoint(BAD, GOOD)
    written = []

    class Stop(BaseException):
        pass

    append = Ledger.append

    def interrupted(ledger: Ledger, kind: str, actor: str, body: dict):
        if len(written) == steps:
            raise Stop
        written.append(kind)
        return append(ledger, kind, actor, body)

    with monkeypatch.context() as patch, pytest.raises(Stop):
        patch.setattr(Ledger, "append", interrupted)
        world.decide()
    assert written[0] == "acceptor_decision" and "transition_completed" not in written
    world.utilities({"agent-z": [1]}) if steps == 4 else gate.queue(world.ledger, str(Path(world.folder, "challenger.json")), "pia", files=FAST)
    state = world.state()
    assert state.epoch == 2 and len(state.criteria) == 1 and len(state.tombstoned) == 4
    assert verify(world.ledger, "epoch").ok


def test_E29_a_transition_without_dependents_is_legitimate(tmp_path: Path) -> None:
    world = EpochWorld(tmp_path).open()
    world.utilities({"agent-c": [1, 1, 0, 1]}, slots=())
    world.queue()
    world.score(world.incumbent(), BAD)
    world.score(world.digest(), GOOD)
    gate.checkpoint(world.ledger, "pia", files=FAST)
    assert world.decide().decision.outcome is Outcome.PROMOTE
    assert world.state().tombstoned == set() and verify(world.ledger, "epoch").ok


def test_critical_items_veto_new_failures() -> None:
    anchor = (*items(40), config.Item("crown", "text", 1, "panel", True), config.Item("spare", "other", 1, "panel", False))
    before = outcomes(anchor, {*range(10), 41})
    after = {**outcomes(anchor, set()), ("crown", 1): 0}
    decision = verdict.compare(verdict.Question(anchor, 1, "all-pass", RULE, 1, 1), before, after)
    assert decision.codes == ("critical_failure",) and decision.findings[0].items == ("crown",)


def test_too_few_discordant_items() -> None:
    assert "insufficient_evidence" in compare(set(range(8)), set(), min_discordant=9).codes


def test_queueing_leaves_the_criterion_alone(world: EpochWorld) -> None:
    before = world.open().criterion()
    world.queue()
    assert world.criterion() == before


def test_a_challenger_queued_after_the_checkpoint_waits(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD)
    world.queue(world.challenger(revision=3))
    assert len(world.decide().record["verdicts"]) == 1
    assert [c.revision for c in world.state().waiting()] == [3]


def test_a_challenger_file_that_changed_is_not_promoted(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD)
    (world.folder / "reviewer-2.md").write_text("other bytes")
    assert world.decide().decision.codes == ("challenger_changed",)
    (world.folder / "reviewer-2.md").write_text("rubric 2 of reviewer\n")
    assert world.decide().decision.outcome is Outcome.PROMOTE


def test_a_reinstated_evaluator_is_a_new_epoch_and_needs_revalidation(world: EpochWorld) -> None:
    world.at_checkpoint(BAD, GOOD).decide()
    world.utilities({"agent-a": [1, 1, 1, 1]}, start=20)
    back = world.challenger(revision=1, text="first rubric of reviewer\n")
    state = world.state()
    assert state.epoch == 2
    assert gate.revalidate(world.ledger, "reviewer", "owner", files=FAST).record["records"] == []  # not reinstated
    world.queue(back)
    state = world.state()
    assert [c.revision for c in state.waiting()] == [1]
    old = [r.id for r in state.utilities if r.epoch == 1]
    state.criteria["reviewer"] = {**lineages.open_for_reading(world.ledger, "epoch").opened.body["criteria"]["reviewer"]}
    assert state.valid() == []  # tombstoned records stay tombstoned
    assert transition.revalidation(state, "reviewer") == old


def test_a_forged_promotion_is_found(world: EpochWorld) -> None:
    world.at_checkpoint(set(), {0})
    world.decide()
    criterion = world.state().criteria["reviewer"]
    problems = fault(world, "evaluator_promoted", {"decision": "0" * 64, "slot": "reviewer", "epoch": 2, "criterion": criterion, "evaluator": {}, "displaced_criterion_sha256": "", "blobs": {}})
    assert any("promotes without a decision to promote" in problem for problem in problems)


def test_the_distance_of_rankings_gives_equal_candidates_their_average_rank() -> None:
    rows = {name: ranking.Ranked(name, passed, 10, False) for name, passed in (("a", 9), ("b", 5), ("c", 5))}
    assert ranking.distance([rows["b"], rows["c"]], [rows["c"], rows["b"]]) is None, "all equal: undefined, not 1"
    other = [ranking.Ranked("c", 8, 10, False), ranking.Ranked("b", 8, 10, False), ranking.Ranked("a", 1, 10, False)]
    assert ranking.distance(list(rows.values()), other) == -1.0
