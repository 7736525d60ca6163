"""The model record as the judge reads it.

Owns reading ``model.jsonl`` and the questions asked of it: which tools were on the wire,
what the model asked for and what came back, how the last response ended, what it cost.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: Faults of the service. What the agent sent wrong (400, 404, 413) is not among them.
_SERVICE_FAULTS = frozenset({"unreachable", "cut", "no-answer", "replay-no-match", "http-401", "http-402", "http-403",
                             "http-408", "http-429"})
#: What every line has.
_LINE_FIELDS = frozenset({"n", "operation", "fault", "finish", "status", "wall_s", "drift"})
#: An agent that hangs up sooner has not waited for an answer.
MIN_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that the model asked for, and the result that the agent sent back (``None``: none came back)."""

    id: str
    name: str
    arguments: object
    result: str | None
    result_error: bool | None
    line: int


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The lines of a trial's model record, in order; ``numbers`` are their line numbers."""

    lines: tuple[Mapping[str, object], ...]

    @classmethod
    def read(cls, data: bytes | None) -> Exchanges:
        """The record in ``data``; empty for ``None``."""
        return cls(tuple(cls.lines_of(data or b"")))

    @staticmethod
    def lines_of(data: bytes) -> list[dict[str, object]]:
        """The lines that are exchanges. What else stands there was not written by the boundary: its digest tells."""
        lines = []
        for line in data.splitlines():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and value.keys() >= _LINE_FIELDS:
                lines.append(value)
        return lines

    @property
    def model_requests(self) -> list[tuple[int, Mapping[str, object]]]:
        """Requests for a response, with their line numbers."""
        return [(number, line) for number, line in enumerate(self.lines, 1) if line["operation"] == "generate"]

    def offered(self) -> tuple[str, ...] | None:
        """All tools that were on the wire; ``None`` when nothing was asked of the model."""
        requests = self.model_requests
        if not requests:
            return None
        return tuple(dict.fromkeys(name for _, line in requests for name in _names(line.get("tools"))))

    def asked(self) -> list[Asked]:
        """Every call that the model asked for. Results are matched by id, or by order where ids are not kept."""
        results: dict[str, list[Mapping[str, object]]] = {}
        in_order: list[Mapping[str, object]] = []
        for _, line in self.model_requests:
            for result in _objects(line.get("results")):
                results.setdefault(str(result["id"]), []).append(result)
                in_order.append(result)
        calls = []
        position = 0
        for number, line in self.model_requests:
            for call in _objects(line.get("calls")):
                mine = results.get(str(call["id"])) if call["id"] else None
                result = mine.pop(0) if mine else (in_order[position] if not call["id"] and position < len(in_order) else None)
                position += 1
                calls.append(Asked(
                    str(call["id"]), str(call["name"]), call["arguments"], None if result is None else str(result["text"]),
                    None if result is None else result.get("error"), number,  # type: ignore[arg-type]
                ))
        return calls

    def last_failure(self, timed_out: bool) -> tuple[int, str] | None:
        """Line and name of the fault, when the last response of the model was one of the service."""
        requests = [(number, line) for number, line in self.model_requests if line["fault"] != "max-model-requests"]
        if not requests:
            return None
        number, line = requests[-1]
        fault = line["fault"]
        if fault is None and line["finish"] == "cut":
            fault = "cut"
        if fault is None and line["finish"] == "client-closed" and (timed_out or float(str(line["wall_s"])) >= MIN_WAIT_S):
            fault = "no-answer" if line["status"] is None else None
        if not isinstance(fault, str):
            return None
        if fault in ("http-401", "http-403") and line.get("credential") != requests[0][1].get("credential"):
            # The agent authorised itself in another way than before: its own doing.
            return None
        status = fault.removeprefix("http-")
        server = status.isdigit() and 500 <= int(status) <= 599
        return (number, fault) if fault in _SERVICE_FAULTS or server else None

    def cut_line(self) -> int | None:
        """The line of the last response with tools on offer, when it did not end."""
        requests = [(number, line) for number, line in self.model_requests if line.get("tools")]
        return requests[-1][0] if requests and requests[-1][1]["finish"] in ("cut", "length") else None

    def over_limit(self) -> int | None:
        """The first line that was refused because of ``--max-model-requests``."""
        return next((number for number, line in self.model_requests if line["fault"] == "max-model-requests"), None)

    def summary(self, prices: Mapping[str, tuple[float, float]] | None) -> dict[str, object]:
        """Requests, tokens and cost of the trial; ``None`` is unknown."""
        answered = [line for _, line in self.model_requests if isinstance(line.get("usage"), dict)]
        given = _total(line["usage"]["input_tokens"] for line in answered)  # type: ignore[index]
        made = _total(line["usage"]["output_tokens"] for line in answered)  # type: ignore[index]
        return {
            "requests": len(self.model_requests), "exchanges": len(self.lines), "input_tokens": given, "output_tokens": made,
            "cost": None if prices is None else _cost(answered, prices),
            "models": sorted({str(line["model"]) for _, line in self.model_requests if line.get("model")}),
            "drift": sorted({str(item) for line in self.lines for item in _listed(line.get("drift"))}),
            "faults": [str(line["fault"]) for line in self.lines if line["fault"]],
            "tools_sha256": sorted({str(line["tools_sha256"]) for _, line in self.model_requests if line.get("tools_sha256")}),
        }


def total_of(summaries: Iterable[Mapping[str, object]]) -> dict[str, object]:
    """The sums over trials; ``None`` where a trial's number is unknown."""
    listed = list(summaries)
    sums: dict[str, object] = {}
    for key in ("requests", "input_tokens", "output_tokens", "cost"):
        numbers = [summary[key] for summary in listed]
        known = [number for number in numbers if isinstance(number, (int, float))]
        sums[key] = round(sum(known), 9) if len(known) == len(numbers) else None
    return sums


def _cost(lines: Iterable[Mapping[str, object]], prices: Mapping[str, tuple[float, float]]) -> float | None:
    """Sum in the price list's currency; ``None`` when a model has no price or a count is unknown."""
    total = 0.0
    for line in lines:
        usage, price = line["usage"], prices.get(str(line.get("model")))
        given, made = usage["input_tokens"], usage["output_tokens"]  # type: ignore[index]
        if price is None or given is None or made is None:
            return None
        total += (given * price[0] + made * price[1]) / 1_000_000
    return round(total, 9)


def _total(counts: Iterable[object]) -> int | None:
    listed = list(counts)
    known = [count for count in listed if isinstance(count, int)]
    return sum(known) if len(known) == len(listed) and listed else None


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _names(value: object) -> list[str]:
    return [str(item) for item in _listed(value)]


def _objects(value: object) -> list[Mapping[str, object]]:
    return [item for item in _listed(value) if isinstance(item, dict)]
