"""Every numbered negative of the skill gate (S1 to S30), and that a genuine improvement is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_eval.gates import lineage as lineages
from agent_eval.gates.audit import verify
from agent_eval.gates.decision import Level, Outcome
from agent_eval.gates.skill import document, gate, promotion
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput
from tests.gates.skill_world import CONDITIONS, SkillWorld, task, text_of


@pytest.fixture
def world(tmp_path: Path) -> SkillWorld:
    return SkillWorld(tmp_path)


def operation(op: str = "replace", anchor: str | None = "Align the columns.", text: str | None = "Align every column.", file: str = "SKILL.md") -> dict:
    return {key: value for key, value in {"op": op, "file": file, "anchor": anchor, "text": text}.items() if value is not None}


def screened(world: SkillWorld, *operations: dict, **changes: object):
    world.init()
    return world.propose(world.patch(operations=list(operations) or [operation()], **changes))


def decided(world: SkillWorld, before: set[str], after: set[str], *, activation: tuple[set, set] | None = None, **arms: set):
    """Open, propose, measure both required records, decide. Tables list the tasks that fail."""
    world.init()
    proposed = world.propose().record
    world.measure(world.record("effectiveness", proposed, after, before, **arms))
    one, other = activation or (before, after)
    world.measure(world.record("activation", proposed, other, one))
    return gate.decide(world.lineage, "acceptor")


def own(*numbers: int) -> set[str]:
    return {f"select-{n:02d}" for n in numbers}


def foreign(*numbers: int) -> set[str]:
    return {f"select-{50 + n:02d}" for n in numbers}


def test_a_genuine_improvement_is_accepted_promoted_and_rolled_back(world: SkillWorld) -> None:
    original = world.live.read_bytes()
    result = world.reviewed()
    assert result.state == "reviewed"
    assert world.live.read_bytes() == original  # acceptance and review change nothing live
    assert promotion.promote(world.lineage, "owner").state == "promoted"
    assert world.live.read_bytes() == original.replace(b"Align the columns.", b"Align every column by its widest cell.")
    promotion.rollback(world.lineage, "owner")
    assert world.live.read_bytes() == original
    found = verify(world.lineage, "skill")
    assert found.ok and found.decisions == 1


def test_established_needs_the_exact_bound(world: SkillWorld) -> None:
    assert decided(world, own(*range(6)), set()).decision.level is Level.ESTABLISHED


def test_S01_patch_over_operations_lines_and_bytes(world: SkillWorld) -> None:
    many = [operation(anchor=a, text="x") for a in ("Align the columns.", "Put numbers to the right.", "# Tidy tables", "Formats tables.")]
    long = operation(text="\n".join("wide" for _ in range(9)))
    assert screened(world, *many, operation("append", None, "y" * 500), long).decision.codes.count("over_budget") == 1
    details = [f.items[0] for f in world.propose(world.patch(operations=[*many, operation("append", None, "y\n" * 300)])).decision.findings if f.code == "over_budget"]
    assert details == ["operations", "changed_lines", "changed_bytes"]


@pytest.mark.parametrize("file", ["suite.jsonl", "../config.json", "tests/test_x.py"])
def test_S02_patch_touches_another_file(world: SkillWorld, file: str) -> None:
    result = screened(world, operation(file=file))
    assert result.decision.outcome is Outcome.KEEP and "undeclared_file" in result.decision.codes


def test_S03_stale_base(world: SkillWorld) -> None:
    result = screened(world, base={"SKILL.md": "0" * 64})
    assert result.decision.outcome is Outcome.INVALID and result.decision.codes == ("stale_base",)
    assert world.propose().decision is None, "the same edits written for the present bytes were never judged"


@pytest.mark.parametrize("anchor", ["not there", "e"])
def test_S04_anchor_missing_or_not_unique(world: SkillWorld, anchor: str) -> None:
    assert screened(world, operation(anchor=anchor)).decision.codes == ("anchor",)


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        (operation(anchor="Never drop a row.", text="Drop rows freely."), "protected_section"),
        (operation("delete", "Never drop a row.", None), "protected_section"),
        (operation("insert_after", "<!-- safety -->", "\r\nUnless asked."), "protected_section"),
        (operation(text="Align. <!-- /safety --> Anything goes."), "smuggled_marker"),
        (operation(text="Align.\n```\nexample"), "smuggled_fence"),
        (operation(text="Align. <!-- hidden"), "smuggled_fence"),
        (operation("insert_before", "<!-- safety -->", "    "), "smuggled_fence"),
    ],
)
def test_S05_protected_section_or_smuggled_fence(world: SkillWorld, edit: dict, code: str) -> None:
    result = screened(world, edit)
    assert result.decision.outcome is Outcome.KEEP and result.decision.codes == (code,)


def test_S06_duplicate_of_a_rejected_patch(world: SkillWorld) -> None:
    assert decided(world, own(0), own(0)).state == "rejected"
    again = world.propose(world.patch(author="bob", rationale="now with other words"))
    assert again.decision.codes == ("duplicate_of_rejected",)
    same_bytes = [operation("delete", "Align the columns.", None), operation("insert_before", "\r\n\r\n<!-- safety -->", "Align every column by its widest cell.")]
    assert "duplicate_of_rejected" in world.propose(world.patch(operations=same_bytes)).decision.codes


def test_S07_same_task_id_in_train_and_held_out(world: SkillWorld) -> None:
    world.rows["train"].append({**task("train", 9), "id": "select-00"})
    result = world.init()
    assert result.decision.outcome is Outcome.ABSTAIN and "split_overlap" in result.decision.codes
    assert not Path(world.lineage).exists()


@pytest.mark.parametrize(
    "text",
    [text_of("select", 3), text_of("select", 3).upper() + "!!", "  " + text_of("select", 3).replace(" ", "\n") + " ", "Kindly, as ever: " + text_of("select", 3) + " before noon"],
)
def test_S08_same_or_near_text_under_another_id(world: SkillWorld, text: str) -> None:
    world.rows["train"].append({**task("train", 9), "text": text})
    assert world.init().decision.codes == ("split_overlap",)


@pytest.mark.parametrize("added", [text_of("select", 4), "e.g. " + text_of("test", 2).title(), "see select-07 first", "zebra-canary-9"])
def test_S09_held_out_content_in_the_patch(world: SkillWorld, added: str) -> None:
    result = screened(world, operation(text=added))
    assert result.decision.outcome is Outcome.ABSTAIN and "leakage" in result.decision.codes


def test_S09_held_out_task_among_the_traces(world: SkillWorld) -> None:
    assert screened(world, traces=[{"id": "r", "task": "select-01"}]).decision.codes == ("leakage",)


def test_S10_select_split_borrowed_from_train(world: SkillWorld) -> None:
    world.config["splits"]["select"] = "train.jsonl"
    world.rows["train"] = [task("train", n) for n in range(8)]
    result = world.init()
    assert result.decision.outcome is Outcome.ABSTAIN and result.decision.codes == ("split_overlap",)


def test_S11_tie(world: SkillWorld) -> None:
    result = decided(world, own(0, 1), own(2, 3))
    assert result.decision.outcome is Outcome.KEEP and result.decision.codes == ("tie",)


def test_S12_held_in_gain_with_held_out_tie(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose().record
    world.measure(world.record("effectiveness", proposed, set(), {"train-00", "train-01"}, split="train"))
    world.measure(world.record("effectiveness", proposed, own(1), own(1)))
    world.measure(world.record("activation", proposed, set(), set()))
    assert gate.decide(world.lineage, "acceptor").decision.codes == ("tie",)


def test_S13_corpus_average_up_target_skill_down(world: SkillWorld) -> None:
    result = decided(world, foreign(0, 1, 2, 3), own(0), activation=(foreign(0, 1, 2, 3), own(0)))
    assert result.decision.detail["corpus"]["effectiveness"] == {"n": 14, "incumbent": 10, "candidate": 13}
    assert result.decision.outcome is Outcome.KEEP and "worse" in result.decision.codes


def test_S13_another_skill_loses_behind_the_target_gain(world: SkillWorld) -> None:
    result = decided(world, own(*range(8)), foreign(0), activation=(set(), set()))
    assert result.decision.codes == ("skill_regression",)


def test_S14_one_critical_loss_behind_a_net_gain(world: SkillWorld) -> None:
    world.rows["select"][9]["critical"] = True
    result = decided(world, own(*range(8)), own(9), activation=(set(), set()))
    assert result.decision.outcome is Outcome.KEEP and "critical_regression" in result.decision.codes


@pytest.mark.parametrize("value", ['NaN', 'Infinity', 'null', 'true', '"maybe"', '1'])
def test_S15_cell_without_a_plain_outcome(world: SkillWorld, value: str) -> None:
    world.init()
    record = world.record("effectiveness", world.propose().record, set(), own(*range(8)))
    text = json.dumps(record).replace('"outcome": "pass"', f'"outcome": {value}', 1)
    with pytest.raises(InvalidInput):
        gate.measure(world.lineage, world.save("record.json", text), "pia")


def test_S15_missing_pair_and_dropped_repeat(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path, repeats=2)
    world.init()
    proposed = world.propose().record
    record = world.record("effectiveness", proposed, set(), own(*range(8)))
    record["arms"]["candidate"]["cells"].pop()
    record["arms"]["incumbent"]["cells"][0]["outcome"] = "not_run"
    world.measure(record)
    world.measure(world.record("activation", proposed, set(), set()))
    result = gate.decide(world.lineage, "acceptor")
    assert result.decision.outcome is Outcome.ABSTAIN and result.decision.codes == ("missing_cells",)


def test_S15_an_error_counts_against_the_candidate_and_for_the_incumbent(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose().record
    record = world.record("effectiveness", proposed, set(), own(*range(6)))
    record["arms"]["candidate"]["cells"][0]["outcome"] = "error"
    record["arms"]["incumbent"]["cells"][1]["outcome"] = "error"
    world.measure(record)
    world.measure(world.record("activation", proposed, set(), set()))
    assert len(gate.decide(world.lineage, "acceptor").decision.test.wins) == 4


def test_S16_thresholds_changed_after_the_first_measurement(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose().record
    world.measure(world.record("effectiveness", proposed, set(), own(0)))
    world.config["rule"]["evidence"] = "strict-only"
    world.write()
    result = gate.decide(world.lineage, "acceptor")
    assert result.decision.outcome is Outcome.INVALID and "frozen_changed" in result.decision.codes
    world.config["rule"] = {"min_tasks": 6}
    world.write()  # put back: a lineage that was broken stays closed
    assert gate.decide(world.lineage, "acceptor").decision.codes == ("lineage_closed",)


@pytest.mark.parametrize("name", ["evaluator"])
def test_S17_evaluator_changed_in_the_same_comparison(world: SkillWorld, name: str) -> None:
    world.init()
    record = world.record("effectiveness", world.propose().record, set(), own(0))
    record["arms"]["candidate"]["conditions"] = {**CONDITIONS, name: {"id": "kinder"}}
    result = world.measure(record)
    assert result.decision.outcome is Outcome.INVALID and result.decision.codes == ("conditions_changed",)


@pytest.mark.parametrize("name", ["model", "harness", "seeds", "budget", "extra"])
def test_S18_other_model_harness_seed_or_budget_between_arms(world: SkillWorld, name: str) -> None:
    world.init()
    record = world.record("effectiveness", world.propose().record, set(), own(0))
    record["arms"]["incumbent"]["conditions"] = {**CONDITIONS, name: "other"}
    found = world.measure(record).decision.findings
    assert [(f.code, f.items) for f in found] == [("conditions_changed", (name,))]


def test_S19_routing_offered_as_effectiveness_and_effectiveness_as_activation(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose().record
    routing = world.record("routing", proposed, set(), set())
    with pytest.raises(InvalidInput):
        gate.measure(world.lineage, world.save("r.json", {**routing, "measurement": "effectiveness"}), "pia")
    record = world.record("activation", proposed, set(), own(0))
    for arm, side in (("incumbent", "base_exposure"), ("candidate", "candidate_exposure")):
        record["arms"][arm]["exposed_sha256"] = proposed[side]["effectiveness"]
    assert world.measure(record).decision.codes == ("wrong_exposure",)


def test_S20_description_changed_but_only_effectiveness_measured(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose(world.patch(operations=[operation(anchor="Formats tables.", text="Formats any table.")])).record
    assert proposed["required"] == ["routing", "activation"]
    world.measure(world.record("effectiveness", proposed, set(), own(*range(8))))
    result = gate.decide(world.lineage, "acceptor")
    assert result.decision.outcome is Outcome.ABSTAIN and result.decision.findings[0].items == ("routing", "activation")


def test_S20_a_description_edit_is_judged_on_routing_and_activation(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose(world.patch(operations=[operation(anchor="Formats tables.", text="Formats any table.")])).record
    world.measure(world.record("routing", proposed, set(), own(*range(7))))
    world.measure(world.record("activation", proposed, set(), set()))
    result = gate.decide(world.lineage, "acceptor")
    assert result.decision.outcome is Outcome.PROMOTE and set(result.decision.detail["tests"]) == {"routing"}


def test_S20_an_edit_of_both_needs_all_three(world: SkillWorld) -> None:
    result = screened(world, operation(), operation(anchor="Formats tables.", text="Formats any table."))
    assert result.record["required"] == ["routing", "effectiveness", "activation"]


def test_S21_format_failures_are_counted_apart_and_never_dropped(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose(world.patch(operations=[operation(anchor="Formats tables.", text="Formats any table.")])).record
    record = world.record("routing", proposed, set(), own(*range(8)))
    for cell in record["arms"]["candidate"]["cells"][:2]:
        cell |= {"status": "format_failure", "chosen": None}
    record["arms"]["candidate"]["cells"][2] |= {"status": "operational_error", "chosen": None}
    world.measure(record)
    world.measure(world.record("activation", proposed, set(), set()))
    decision = gate.decide(world.lineage, "acceptor").decision
    counts = decision.detail["counts"]["routing"]["candidate"]
    assert counts == {"cells": 14, "ok": 11, "format_failure": 2, "operational_error": 1, "right": 11, "own_answered": 7, "own_right": 7, "false_activations": 0}
    assert len(decision.test.wins) == 5 and decision.test.both + decision.test.neither + 5 == 10  # the three still stand in the table


def test_S22_negative_control_has_an_effect(world: SkillWorld) -> None:
    before = own(*range(8))
    result = decided(world, before, set(), control=before, negative=set())
    assert result.decision.outcome is Outcome.ABSTAIN and "negative_control_effect" in result.decision.codes


def test_S22_a_candidate_below_no_skill_at_all(world: SkillWorld) -> None:
    result = decided(world, own(*range(8)), own(8), control=set(), negative=set(), activation=(set(), set()))
    assert "worse_than_no_skill" in result.decision.codes


def test_S23_replicates_are_not_independent_tasks(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path, repeats=5)
    result = decided(world, own(0, 1, 2), set())  # 15 better cells, 3 better tasks
    assert (len(result.decision.test.wins), result.decision.codes) == (3, ("not_established",))
    assert result.decision.test.more_clean_wins() == 3


def test_S24_consultation_budget_exhausted(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path, rule={"min_tasks": 6, "max_consultations": 1})
    assert decided(world, own(0), own(0)).state == "rejected"
    proposed = world.propose(world.patch(operations=[operation(text="Align them all.")])).record
    world.measure(world.record("effectiveness", proposed, set(), own(*range(9))))
    world.measure(world.record("activation", proposed, set(), set()))
    result = gate.decide(world.lineage, "acceptor")
    assert result.decision.outcome is Outcome.ABSTAIN and result.decision.codes == ("consultations_exhausted",)


def test_S24_a_look_counts_without_a_decision(world: SkillWorld) -> None:
    world.init()
    first = world.propose().record
    world.measure(world.record("effectiveness", first, own(0), set()))  # looked at, and never decided
    second = world.propose(world.patch(operations=[operation(text="Align them all.")])).record
    world.measure(world.record("effectiveness", second, set(), own(*range(6))))
    world.measure(world.record("activation", second, set(), set()))
    result = gate.decide(world.lineage, "acceptor")
    assert result.decision.test.look == 2 and result.decision.codes == ("not_established",)


def test_S24_split_moved(world: SkillWorld) -> None:
    world.init()
    record = world.record("effectiveness", world.propose().record, set(), own(0))
    record["split_sha256"] = "1" * 64
    assert world.measure(record).decision.codes == ("split_changed",)
    world.rows["select"].append(task("select", 30))
    world.write()
    assert gate.decide(world.lineage, "a").decision.outcome is Outcome.INVALID


def test_S25_cached_score_of_another_candidate_or_run(world: SkillWorld) -> None:
    assert decided(world, own(0), own(0)).state == "rejected"
    proposed = world.propose(world.patch(operations=[operation(text="Align them all.")])).record
    record = world.record("effectiveness", proposed, set(), own(*range(8)))
    record["arms"]["incumbent"]["run_id"] = "run-1"  # the incumbent must be measured again
    assert world.measure(record).decision.codes == ("reused_run",)
    record = world.record("effectiveness", proposed, set(), own(*range(8)))
    record["candidate_sha256"] = "2" * 64
    assert world.measure(record).decision.codes == ("wrong_candidate",)


def test_S26_score_bonus_unrelated_to_the_outcome(world: SkillWorld) -> None:
    world.init()
    record = world.record("effectiveness", world.propose().record, set(), own(0))
    record["arms"]["candidate"]["cells"][0]["bonus"] = 0.2
    with pytest.raises(InvalidInput, match="bonus"):
        world.measure(record)


def test_S27_ungated_mutation_after_the_gate(world: SkillWorld) -> None:
    world.reviewed()
    promotion.promote(world.lineage, "owner")
    world.live.write_bytes(world.live.read_bytes() + b"An afterthought.\r\n")
    result = world.propose()
    assert result.decision.outcome is Outcome.INVALID and result.decision.codes == ("live_changed",)
    assert not verify(world.lineage, "skill").ok
    promotion.rollback(world.lineage, "owner", restore=True)
    assert verify(world.lineage, "skill").ok


@pytest.mark.parametrize("reviewer", ["ada", "pia", " ADA ", "Ａda", "p\u200bia"])
def test_S28_reviewer_is_author_or_proposer(world: SkillWorld, reviewer: str) -> None:
    result = world.accepted()
    reviewed = promotion.review(world.lineage, result.record["decision_digest"], reviewer, approve=True)
    assert reviewed.decision.outcome is Outcome.INVALID and reviewed.decision.codes == ("reviewer_not_independent",)
    assert promotion.promote(world.lineage, "owner").decision.codes == ("not_reviewed",)


def test_S28_missing_provenance(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose(world.patch(traces=[])).record
    world.measure(world.record("effectiveness", proposed, set(), own(*range(8))))
    world.measure(world.record("activation", proposed, set(), set()))
    digest = gate.decide(world.lineage, "acceptor").record["decision_digest"]
    assert promotion.review(world.lineage, digest, "rita", approve=True).decision.codes == ("missing_provenance",)


def test_S28_approval_of_another_digest(world: SkillWorld) -> None:
    world.accepted()
    assert promotion.review(world.lineage, "3" * 64, "rita", approve=True).decision.codes == ("unknown_decision",)


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_S29_rollback_blob_missing_or_changed(world: SkillWorld, damage: str) -> None:
    original = sha256_bytes(world.live.read_bytes())
    world.reviewed()
    blob = Path(world.lineage, "blobs", "sha256", original)
    if damage == "missing":
        blob.unlink()
    else:
        blob.write_bytes(blob.read_bytes()[:-1] + b"!")
    live = world.live.read_bytes()
    with pytest.raises(EvidenceFault, match=original):
        promotion.promote(world.lineage, "owner")
    assert world.live.read_bytes() == live  # refused before anything live changed


def test_S30_canonical_source_changed_before_promotion(world: SkillWorld) -> None:
    world.reviewed()
    world.live.write_bytes(b"hand edit")
    result = promotion.promote(world.lineage, "owner")
    assert result.decision.outcome is Outcome.INVALID and result.decision.codes == ("live_changed",)
    assert world.live.read_bytes() == b"hand edit"


def test_a_directional_gain_needs_a_waiver_and_says_so(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path, rule={"min_tasks": 6, "evidence": "strict-only"})
    result = world.accepted(fixed=2)
    assert result.decision.level is Level.DIRECTIONAL and result.decision.detail["underpowered"] is True
    promotion.review(world.lineage, result.record["decision_digest"], "rita", approve=True)
    refused = promotion.promote(world.lineage, "owner")
    assert refused.decision.outcome is Outcome.KEEP and refused.decision.codes == ("waiver_needed",)


def test_a_waived_directional_gain_is_promoted(tmp_path: Path) -> None:
    world = SkillWorld(tmp_path, rule={"min_tasks": 6, "evidence": "strict-only"})
    digest = world.accepted(fixed=2).record["decision_digest"]
    promotion.review(world.lineage, digest, "rita", approve=True, waiver="two field reports")
    assert promotion.promote(world.lineage, "owner").state == "promoted"


def test_a_refused_review_rejects(world: SkillWorld) -> None:
    digest = world.accepted().record["decision_digest"]
    assert promotion.review(world.lineage, digest, "rita", approve=False).decision.outcome is Outcome.KEEP
    assert gate.state_of(lineages.open_for_reading(world.lineage, "skill"), 1) == "rejected"


def test_a_description_that_fires_everywhere_is_vetoed(world: SkillWorld) -> None:
    world.init()
    proposed = world.propose(world.patch(operations=[operation(anchor="Formats tables.", text="Formats any table.")])).record
    world.measure(world.record("routing", proposed, set(), own(*range(8))))
    record = world.record("activation", proposed, set(), set())
    for cell in record["arms"]["candidate"]["cells"]:
        cell["activated"] = True
    world.measure(record)
    assert gate.decide(world.lineage, "acceptor").decision.codes == ("false_activation",)


def test_the_test_split_is_read_once_after_promotion(world: SkillWorld) -> None:
    world.reviewed()
    status = promotion.status(lineages.open_for_reading(world.lineage, "skill"))["proposals"][0]
    with pytest.raises(InvalidInput):
        world.measure(world.record("effectiveness", status, set(), set(), split="test"))
    promotion.promote(world.lineage, "owner")
    assert world.measure(world.record("effectiveness", status, set(), set(), split="test")).state == "promoted"
    assert world.measure(world.record("effectiveness", status, set(), set(), split="test")).decision.codes == ("measured_already",)


def test_states_are_not_skipped(world: SkillWorld) -> None:
    world.init()
    assert promotion.promote(world.lineage, "owner").decision.codes == ("not_reviewed",)
    with pytest.raises(InvalidInput):
        gate.decide(world.lineage, "acceptor")
    proposed = world.propose()
    assert proposed.state == "screened"


def test_front_matter_must_stay_valid_and_keep_its_name(world: SkillWorld) -> None:
    assert screened(world, operation(anchor="name: tidy-tables", text="name: other")).decision.codes == ("front_matter",)
    assert world.propose(world.patch(operations=[operation("delete", "description: Formats tables. Use for markdown tables.", None)])).decision.codes == ("front_matter",)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"---\nname: a\ndescription: b\n---\nbody", None),
        (b"\xef\xbb\xbf---\r\nname: 'a'\r\ndescription: >-\r\n  b\r\n---\r\n", None),
        (b"# no front matter", "has no front matter between two lines of ---"),
        (b"---\nname: a\n---\n", "front matter has 0 lines of description, expected 1"),
        (b"---\nname: a\nname: b\ndescription: c\n---\n", "front matter has 2 lines of name, expected 1"),
        (b"---\nname: a\ndescription: >\n---\n", "front matter has an empty description"),
    ],
)
def test_front_matter_forms(text: bytes, problem: str | None) -> None:
    assert document.front_matter_problem(text) == problem


def test_S09_a_patch_that_completes_a_held_out_sentence_of_the_base(world: SkillWorld) -> None:
    whole = "put every number of the harbour ledger to the right of the column that names its month"
    world.rows["select"][0]["text"] = whole
    world.live.write_bytes(world.live.read_bytes().replace(b"Put numbers to the right.", b"Put every number of the harbour ledger to the"))
    result = screened(world, operation("insert_after", "harbour ledger to the", " right of the column that names its month"))
    assert result.decision.outcome is Outcome.ABSTAIN and "leakage" in result.decision.codes


def test_S03_the_base_moved_between_acceptance_and_promotion(world: SkillWorld) -> None:
    first = world.accepted().record["decision_digest"]
    second = world.propose(world.patch(operations=[operation(text="Align them all.")])).record
    failing = own(*range(9))
    world.measure(world.record("effectiveness", second, set(), failing))
    world.measure(world.record("activation", second, set(), failing))
    other = gate.decide(world.lineage, "acceptor").record["decision_digest"]
    for digest in (first, other):
        promotion.review(world.lineage, digest, "rita", approve=True)
    assert promotion.promote(world.lineage, "owner", proposal=1).state == "promoted"
    assert promotion.promote(world.lineage, "owner", proposal=2).decision.codes == ("stale_base",)
