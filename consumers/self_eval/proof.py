"""The suite's own proof: every example and every declared negative gives its declared result.

Owns running the declarations in ``evals/`` (data: records, patches on good records, expected results).
A grader is proven like any judge: by known-good receipts that pass and known-bad ones that it catches.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent_eval import InvalidInput, receipt, strict_json

from .contracts import CONTRACTS
from .scoring import Scorer
from .suite import Suite, read_suite

MAX_FILE_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Result:
    """One declaration: what was expected, what came, and whether they agree."""

    group: str
    id: str
    title: str
    expected: str
    got: str

    @property
    def held(self) -> bool:
        """Whether the declared result came."""
        return self.expected == self.got


def prove(suite: Suite, folder: str) -> list[Result]:
    """Every declaration of the suite in ``folder``; raises ``InvalidInput`` when one cannot be read."""
    results: list[Result] = []
    if suite.receipt_contract is not None:
        results += _examples(suite, folder)
        for name in suite.receipt_contract["negatives"]:
            results += _receipt_negatives(suite, folder, name)
    for name, declaration in suite.contracts.items():
        if "negatives" in declaration:
            results += _contract_negatives(name, declaration, folder)
    if not results:
        raise InvalidInput.one(folder, "the suite declares no example and no negative", "add a receiptContract")
    return results


def _read(folder: str, name: str) -> Any:
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as stream:
            return strict_json.parse(stream.read(MAX_FILE_BYTES + 1), max_bytes=MAX_FILE_BYTES)
    except OSError as error:
        raise InvalidInput.one(path, f"cannot be read ({error.strerror})") from None
    except strict_json.JsonError as error:
        raise InvalidInput.one(path, f"not strict JSON: {error}") from None


def _bytes(folder: str, name: str) -> bytes:
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput.one(path, f"cannot be read ({error.strerror})") from None


# --- examples ---


def _examples(suite: Suite, folder: str) -> Iterator[Result]:
    place = suite.receipt_contract["examples"]
    try:
        names = sorted(name for name in os.listdir(os.path.join(folder, place)) if name.endswith(".json"))
    except OSError as error:
        raise InvalidInput.one(os.path.join(folder, place), f"cannot be read ({error.strerror})") from None
    for name in names:
        declared = _read(folder, os.path.join(place, name))
        try:
            yield _example(suite, folder, name, declared)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidInput.one(os.path.join(folder, place, name), f"not a declaration of an example ({error!r})") from None


def _example(suite: Suite, folder: str, name: str, declared: Mapping[str, Any]) -> Result:
    title, expected = declared["title"], declared["expect"]
    if "suite" in declared:
        got = _validity(lambda: read_suite(_bytes(folder, declared["suite"]), ""))
    else:
        items = [_bytes(folder, path) for path in declared["receipts"]]
        got = _scored(Scorer(suite), items, declared.get("observed", {}), full=True)
    return Result("examples", name.removesuffix(".json"), title, _canonical(expected), _canonical(got))


def _scored(scorer: Scorer, items: list[bytes], observed: Mapping[str, Any], *, full: bool) -> dict[str, Any]:
    """What receipts come to together: ``invalid`` with places, or the verdict of the one receipt."""
    read = []
    places: list[str] = []
    for data in items:
        try:
            read.append(receipt.read_receipt(data, ""))
        except InvalidInput as error:
            places += [problem.where for problem in error.problems]
    runs: dict[str, str] = {}
    for item in read:
        if runs.setdefault(item.run_id, item.sha256) != item.sha256:
            places.append("#/runId")
    if places:
        return {"verdict": "invalid", "at": sorted(set(places))}
    judgment = scorer.judge(read[0].sections, read[0].hidden, observed)
    got: dict[str, Any] = {"verdict": judgment.verdict.value}
    if judgment.reasons:
        got["reasons"] = sorted(judgment.reasons)
    if full:
        got["statuses"] = {check.id: check.status for check in judgment.checks}
        got["pointers"] = {
            check.id: list(check.evidence) for check in judgment.checks if check.status in ("fail", "missing", "unsupported")
        }
    return got


def _validity(read: Any) -> dict[str, Any]:
    try:
        read()
    except InvalidInput as error:
        return {"verdict": "invalid", "at": sorted({problem.where for problem in error.problems})}
    return {"verdict": "valid"}


# --- declared negatives ---


def patched(base: Any, change: Mapping[str, Any]) -> Any:
    """A copy of ``base`` with ``set`` (pointer -> value; ``-`` appends) and ``remove`` (pointers) applied."""
    value = copy.deepcopy(base)
    for pointer, item in change.get("set", {}).items():
        holder, key = _holder(value, pointer)
        if isinstance(holder, list):
            if key == "-":
                holder.append(item)
            else:
                holder[int(key)] = item
        else:
            holder[key] = item
    for pointer in change.get("remove", ()):
        holder, key = _holder(value, pointer)
        del holder[int(key) if isinstance(holder, list) else key]
    return value


def _holder(value: Any, pointer: str) -> tuple[Any, str]:
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]
    for token in tokens[:-1]:
        value = value[int(token)] if isinstance(value, list) else value[token]
    return value, tokens[-1]


def _receipt_negatives(suite: Suite, folder: str, name: str) -> Iterator[Result]:
    declared = _read(folder, name)
    try:
        base, good_suite = _read(folder, declared["base"]), json.loads(suite.text)
        for item in declared["negatives"]:
            got = _receipt_negative(suite, base, good_suite, item)
            expected = item["expect"]
            shown = {key: got.get(key) for key in expected if key in got}
            yield Result(declared["group"], item["id"], item["title"], _canonical(expected), _canonical(shown))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise InvalidInput.one(os.path.join(folder, name), f"not a list of negatives ({error!r})") from None


def _receipt_negative(suite: Suite, base: Any, good_suite: Any, item: Mapping[str, Any]) -> dict[str, Any]:
    scorer = Scorer(suite)
    if "suite" in item:
        data = strict_json.canonical(patched(good_suite, item["suite"]))
        validity = _validity(lambda: read_suite(data, ""))
        if validity["verdict"] == "invalid" or not item.get("score"):
            return validity
        scorer = Scorer(read_suite(data, ""))
    items = [_receipt_bytes(base, item)]
    if "beside" in item:
        items.append(strict_json.canonical(patched(base, item["beside"])))
    got = _scored(scorer, items, item.get("observed", {}), full=True)
    for case_id, status in got.get("statuses", {}).items():
        got[f"case:{case_id}"] = status
    got["scored"] = sorted(got.get("statuses", ()))
    return got


def _receipt_bytes(base: Any, item: Mapping[str, Any]) -> bytes:
    if "rawHex" in item:
        return bytes.fromhex(item["rawHex"])
    if "raw" in item:
        return item["raw"].encode("utf-8")
    data = strict_json.canonical(patched(base, item.get("receipt", {})))
    return data + b" " * max(0, item.get("padToBytes", 0) - len(data))


def _contract_negatives(name: str, declaration: Mapping[str, Any], folder: str) -> Iterator[Result]:
    contract = CONTRACTS[name]
    declared = _read(folder, declaration["negatives"])
    try:
        base = declared["base"]
        yield _decided(contract, declaration, base, f"{contract.letter}0", "a genuine improvement is promoted", declared["expect"])
        for item in declared["negatives"]:
            yield _decided(contract, declaration, patched(base, item), item["id"], item["title"], item["expect"])
    except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
        raise InvalidInput.one(os.path.join(folder, declaration["negatives"]), f"not a list of negatives ({error!r})") from None


def _decided(contract: Any, declaration: Mapping[str, Any], record: Any, name: str, title: str, expect: Mapping[str, Any]) -> Result:
    decision = contract.decide(declaration, record)
    got: dict[str, Any] = {"outcome": decision.outcome}
    if "reasons" in expect or decision.reasons:
        got["reasons"] = list(decision.reasons)
    if decision.evidence_level is not None:
        got["evidenceLevel"] = decision.evidence_level
    return Result(contract.name, name, title, _canonical(expect), _canonical(got))


# --- results ---


def _canonical(value: Any) -> str:
    return strict_json.canonical(value).decode("ascii")


def results_text(results: list[Result]) -> str:
    """What does not hold, each with both sides, and the counts by group."""
    lines = []
    for result in results:
        if not result.held:
            lines.append(f"{result.group} {result.id} ({result.title}):\n  expected {result.expected}\n  got      {result.got}")
    for group in dict.fromkeys(result.group for result in results):
        own = [result for result in results if result.group == group]
        lines.append(f"{group}: {sum(result.held for result in own)}/{len(own)} as declared")
    held = sum(result.held for result in results)
    lines.append(f"{held}/{len(results)} as declared" + ("" if held == len(results) else "; the suite's proof does not hold"))
    return "\n".join(lines)


def results_json(results: list[Result]) -> str:
    """The same as JSON."""
    rows = [
        {"group": r.group, "id": r.id, "title": r.title, "held": r.held, "expected": json.loads(r.expected), "got": json.loads(r.got)}
        for r in results
    ]
    return json.dumps({"held": all(r.held for r in results), "results": rows}, sort_keys=True)


