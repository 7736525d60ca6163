"""Compare what the probe printed with what the tariff says, value by value, and write the report."""

import json
import sys


def price(units, spec):
    if units < 0:
        return {"raised": "ValueError"}
    return {"value": min(units, spec["limit"]) * spec["low"] + max(units - spec["limit"], 0) * spec["high"]}


def read_answers(path):
    answers = {}
    with open(path, "rb") as stream:
        for line in stream.read().splitlines():
            try:
                item = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(item, dict) and type(item.get("number")) is int:
                # A second answer to the same question is none.
                answers[item["number"]] = None if item["number"] in answers else item
    return answers


def main(workspace, spec_path, output_path, report_path):
    with open(spec_path, "rb") as stream:
        spec = json.load(stream)
    answers = read_answers(output_path)
    checks = []
    for number, units in enumerate(spec["values"]):
        wanted, got = price(units, spec), answers.get(number) or {}
        right = all(key in got and type(got[key]) is type(value) and got[key] == value for key, value in wanted.items())
        shown = {key: got[key] for key in ("value", "raised") if key in got} or "no answer"
        detail = "" if right else f"units {units}: {str(shown)[:80]}"
        checks.append({"id": f"value-{number + 1:02d}", "passed": right, "detail": detail})
    report = {"passed": all(check["passed"] for check in checks) and bool(checks), "checks": checks}
    with open(report_path, "x", encoding="utf-8") as stream:
        json.dump(report, stream)


main(*sys.argv[1:])
