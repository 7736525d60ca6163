"""JUnit, Markdown, attestation and export: golden files, and the rules of their formats.

``GOLDEN_UPDATE=1`` rewrites the golden files; the difference is then read before it is committed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records import strict_json
from agent_eval.records.problems import EvidenceFault, InvalidInput
from agent_eval.report.attestation import statement
from agent_eval.report.inspect_log import inspect_log, inspect_log_name
from agent_eval.report.junit import junit_xml
from agent_eval.report.markdown import code, markdown_summary
from tests.report.synthetic import BINARY_SHA256, Directory, judgment, mixed, outcome

GOLDEN = Path(__file__).parent / "golden"
HOSTILE = "</testcase>]]>\x00\x0b\x1b[2J\ud800\ufffe\uffff\u202e<&\"'|`*_[x](javascript:1)\n# head"


def reader(directory: Path) -> EvidenceReader:
    return EvidenceReader.open(str(directory))


def assert_golden(name: str, data: bytes, made: Directory) -> None:
    """Paths and the seal depend on where the test runs and are replaced by words."""
    seal = reader(made.path).seal
    stable = data.decode().replace(str(made.path), "/evidence").replace(seal, "SEAL")
    target = GOLDEN / name
    if os.environ.get("GOLDEN_UPDATE"):
        target.write_text(stable, encoding="utf-8")
    assert stable == target.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "make"),
    [("junit.xml", junit_xml), ("summary.md", markdown_summary), ("statement.json", statement), ("inspect.json", inspect_log)],
)
def test_golden(tmp_path: Path, name: str, make: object) -> None:
    made = mixed(tmp_path / "e")
    assert_golden(name, make(reader(made.path)), made)


def assert_junit_rules(data: bytes) -> ElementTree.Element:
    """The structure of junit-10.xsd (Jenkins xUnit plugin), and what the Ant-derived schema requires besides."""
    root = ElementTree.fromstring(data)
    assert root.tag == "testsuites" and set(root.attrib) <= {"name", "time", "tests", "failures", "errors"}
    surefire_time = re.compile(r"(([0-9]{0,3},)*[0-9]{3}|[0-9]{0,3})*(\.[0-9]{0,3})?")
    for suite in root:
        assert suite.tag == "testsuite"
        assert {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname", "id", "package"} == set(suite.attrib)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.attrib["timestamp"]) and surefire_time.fullmatch(suite.attrib["time"])
        assert suite[0].tag == "properties"
        assert all(item.tag == "property" and set(item.attrib) == {"name", "value"} for item in suite[0])
        cases = suite[1:]
        assert all(case.tag == "testcase" and set(case.attrib) == {"name", "classname", "time"} for case in cases)
        for case in cases:
            assert [child.tag for child in case] == sorted(
                (child.tag for child in case), key=["skipped", "error", "failure", "system-out", "system-err"].index
            )
            assert sum(child.tag in ("skipped", "error", "failure") for child in case) <= 1
            for child in case:
                allowed = {"skipped": {"message"}, "error": {"type", "message"}, "failure": {"type", "message"}}
                assert set(child.attrib) == allowed.get(child.tag, set())
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.attrib[attribute]) == sum(case.find(tag) is not None for case in cases)
        assert int(suite.attrib["tests"]) == len(cases)
    for attribute in ("tests", "failures", "errors"):
        assert int(root.attrib[attribute]) == sum(int(suite.attrib[attribute]) for suite in root)
    return root


def test_junit_has_a_testcase_for_every_planned_trial(tmp_path: Path) -> None:
    root = assert_junit_rules(junit_xml(reader(mixed(tmp_path / "e").path)))
    found = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert len(found) == 12
    assert found["edit@1/002"] == ["failure", "system-err"]
    assert found["edit@1/003"] == ["error"] and found["resist@1/002"] == ["error"]
    assert found["resist@1/003"] == ["skipped"]
    assert found["read@1/001"] == ["system-out"]


def hostile(path: Path) -> Directory:
    text = HOSTILE.encode("utf-8", "replace").decode()
    made = Directory(path, ["a"], 3, consumer=text)
    made.plan["cases"][0] |= {"scope": text, "not_scored": [text]}
    files = {"stdout.bin": text.encode() * 3, "stderr.bin": b"\xff" * 100, "events.jsonl": json.dumps({"type": "message", "text": text}).encode()}
    made.trial("a", 1, judgment("fail", text, detail=text), files=files)
    made.trial("a", 2, judgment("void", cause=text))
    made.seal(made.summary() | {"not_scored": [text], "verdict": text})
    return made


def test_junit_of_hostile_evidence_is_legal_xml(tmp_path: Path) -> None:
    data = junit_xml(reader(hostile(tmp_path / "e").path))
    assert_junit_rules(data)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", data.decode())
    assert "\\x00\\x0b\\x1b[2J" in data.decode()


def test_junit_output_is_bounded_with_size_and_path_said(tmp_path: Path, two_thousand: Directory) -> None:
    made = Directory(tmp_path / "one", ["a"], 1)
    made.trial("a", 1, judgment("pass"), files={"stdout.bin": b"&" * 9_000_000, "stderr.bin": bytes(range(256)) * 9_000})
    made.seal()
    data = junit_xml(reader(made.path))
    assert len(data) < 150_000
    assert f"of 9000000 left out; all are in {made.path}/trials/a/001/stdout.bin" in data.decode()
    assert "not text, shown in hex" in data.decode()
    assert len(junit_xml(reader(two_thousand.path))) < 20_000_000


def test_a_run_without_trials_is_still_a_document(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", [], 0, kind="compare")
    made.seal(made.summary())
    root = assert_junit_rules(junit_xml(reader(made.path)))
    assert root.attrib["tests"] == "0"


def test_markdown_of_hostile_evidence_stays_in_code_spans(tmp_path: Path) -> None:
    text = markdown_summary(reader(hostile(tmp_path / "e").path)).decode()
    outside = re.sub(r"(`+) ?.*? ?\1(?!`)", "", text)
    assert "javascript" not in outside and "</testcase>" not in outside and "\n# head" not in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 5, line


@pytest.mark.parametrize(("raw", "span"), [("a", "`a`"), ("a`b", "`` a`b ``"), ("``", "``` `` ```"), ("a|b", "`a\\|b`"), ("", "`  `"), ("<b>", "`<b>`")])
def test_code_spans(raw: str, span: str) -> None:
    assert code(raw) == span


def test_markdown_is_bounded(two_thousand: Directory) -> None:
    text = markdown_summary(reader(two_thousand.path)).decode()
    assert len(text) < 60_000
    assert "200 more cases passed no smaller share." in text and "more trials that did not pass are in the evidence." in text


def test_the_statement_binds_the_binary_and_the_seal(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    data = statement(reader(made.path))
    value = strict_json.parse_object(data)
    assert data == strict_json.canonical(value) + b"\n"
    assert value["_type"] == "https://in-toto.io/Statement/v1"
    assert value["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert {"name": "/abs/agent", "digest": {"sha256": BINARY_SHA256}} in value["subject"]
    predicate = value["predicate"]
    assert set(predicate) == {"result", "configuration", "passedTests", "warnedTests", "failedTests"}
    assert predicate["result"] == "FAILED" and predicate["failedTests"] == ["edit@1/002", "repair@1/001"]
    assert predicate["configuration"][0]["digest"] == {"sha256": reader(made.path).seal}
    assert all(re.fullmatch("[0-9a-f]{64}", entry["digest"]["sha256"]) for entry in [*value["subject"], *predicate["configuration"]])
    annotations = predicate["configuration"][0]["annotations"]
    listed = sum(len(predicate[name]) for name in ("passedTests", "warnedTests", "failedTests"))
    named = sum(len(annotations[f"{name}_tests"]) for name in ("void", "interrupted", "unrun"))
    assert listed + named == annotations["planned"] == 12


@pytest.mark.parametrize(
    ("judged", "leaked", "result"),
    [
        ([judgment("pass")] * 2, 0, "PASSED"),
        ([judgment("pass")] * 2, 1, "WARNED"),
        ([judgment("pass"), judgment("fail", "x")], 0, "FAILED"),
        ([judgment("pass"), judgment("void", cause="x")], 0, "FAILED"),
        ([judgment("pass")], 0, "FAILED"),
        ([], 0, "FAILED"),
    ],
)
def test_only_a_whole_pass_is_attested_as_one(tmp_path: Path, judged: list[dict], leaked: int, result: str) -> None:
    made = Directory(tmp_path / "e", ["a"], 2)
    for number, found in enumerate(judged, 1):
        tree = {"containment": "subreaper", "leaked": leaked, "escaped": 0, "killed": leaked, "unreaped": []}
        made.trial("a", number, found, outcome(tree=tree))
    made.seal()
    predicate = strict_json.parse_object(statement(reader(made.path)))["predicate"]
    assert predicate["result"] == result
    assert (predicate["warnedTests"] != []) is (result == "WARNED")


def test_identity_files_are_subjects_with_unique_names(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["a"], 2, subject={})
    for number, digest in ((1, "a" * 64), (2, "b" * 64)):
        entry = {"path": "/owner/verify.py", "role": "argument", "type": "file", "sha256": digest}
        made.trial("a", number, judgment("pass"), identity={"before": [entry], "after": [entry], "reused": []})
    made.seal()
    assert strict_json.parse_object(statement(reader(made.path)))["subject"] == [
        {"name": "/owner/verify.py", "digest": {"sha256": "a" * 64}},
        {"name": "/owner/verify.py (2)", "digest": {"sha256": "b" * 64}},
    ]


def test_what_cannot_be_attested_is_refused(tmp_path: Path) -> None:
    made = Directory(tmp_path / "none", ["a"], 1, subject={})
    made.trial("a", 1, judgment("pass"))
    made.seal()
    with pytest.raises(InvalidInput, match="no digest of what was tested"):
        statement(reader(made.path))
    (made.path / "manifest-sha256.txt").unlink()
    with pytest.raises(InvalidInput, match="unsealed"):
        statement(EvidenceReader.open(str(made.path), unsealed_ok=True))


def test_the_seal_signed_with_ssh_keygen_verifies_and_another_does_not(tmp_path: Path) -> None:
    if shutil.which("ssh-keygen") is None:
        pytest.skip("skipped: no ssh-keygen on this machine")
    seal = reader(mixed(tmp_path / "e").path).seal

    def keygen(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run(["ssh-keygen", *arguments], input=given, capture_output=True, text=True, timeout=30, cwd=tmp_path)

    keygen("-q", "-t", "ed25519", "-N", "", "-C", "ci@example.org", "-f", "key")
    (tmp_path / "seal.txt").write_text(f"{seal}\n")
    assert keygen("-Y", "sign", "-f", "key", "-n", "agent-eval", "seal.txt").returncode == 0
    (tmp_path / "allowed").write_text(f"ci@example.org {(tmp_path / 'key.pub').read_text()}")
    check = ("-Y", "verify", "-f", "allowed", "-I", "ci@example.org", "-n", "agent-eval", "-s", "seal.txt.sig")
    assert keygen(*check, given=f"{seal}\n").returncode == 0
    other = seal[:-1] + ("0" if seal[-1] != "0" else "1")
    assert keygen(*check, given=f"{other}\n").returncode != 0


def test_a_void_trial_has_no_score_in_the_export_and_nothing_is_lost_silently(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["a"], 4)
    events = [
        {"type": "start"}, {"type": "message", "text": "hello"}, {"type": "tool_call", "id": "1", "tool": "read", "arguments": {"path": "x"}},
        {"type": "tool_result", "id": "1", "ok": False, "exit_code": 2, "output": "no"}, {"type": "denied", "id": "2"},
        {"type": "usage", "input_tokens": 3, "output_tokens": 4}, {"type": "final", "status": "completed", "answer": "done"},
    ]  # fmt: skip
    files = {"task.json": b'{"instruction":"do it"}', "events.jsonl": b"\n".join(json.dumps(e).encode() for e in events), "stderr.bin": b"\xff"}
    made.trial("a", 1, judgment("pass"), files=files)
    made.trial("a", 2, judgment("void", cause="model-service"))
    made.trial("a", 3, judgment("fail", "x"), outcome(stop_reason="timeout"))
    made.seal()
    log = json.loads(inspect_log(reader(made.path)))
    first, void, failed = log["samples"]
    assert [message["role"] for message in first["messages"]] == ["user", "assistant", "assistant", "tool", "tool"]
    assert first["output"]["completion"] == "done" and first["input"] == "do it"
    assert first["scores"]["verdict"]["value"] == "C" and failed["scores"]["verdict"]["value"] == "I"
    assert "scores" not in void and void["error"]["message"] == "model-service"
    assert failed["limit"] == {"type": "time", "limit": 60.0}
    dropped = first["metadata"]["agent_eval"]["dropped"]
    assert any("usage" in item for item in dropped) and "stderr.bin: 1 bytes" in dropped
    assert log["eval"]["metadata"]["agent_eval"]["unrun"] == ["a/004"] and log["status"] == "error"
    assert log["results"]["total_samples"] == 4 and log["results"]["completed_samples"] == 2


def inspect_python() -> str | None:
    """A Python that has ``inspect_ai``: ``INSPECT_PYTHON``, or this one."""
    for python in (os.environ.get("INSPECT_PYTHON"), sys.executable):
        if python and subprocess.run([python, "-c", "import inspect_ai"], capture_output=True).returncode == 0:
            return python
    return None


READ_BACK = """
import json, sys
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries, write_eval_log
listed = [info.task for info in list_eval_logs(sys.argv[3])]
log = read_eval_log(sys.argv[1])
write_eval_log(log, sys.argv[2])
again = read_eval_log(sys.argv[2])
summaries = read_eval_log_sample_summaries(sys.argv[1])
print(json.dumps({
    "status": log.status, "samples": [[s.id, s.epoch, s.scores and s.scores["verdict"].value, s.error and s.error.message] for s in log.samples],
    "metrics": {name: metric.value for name, metric in log.results.scores[0].metrics.items()},
    "tools": [m.tool_calls[0].function for m in log.samples[0].messages if m.role == "assistant" and m.tool_calls],
    "again": len(again.samples), "listed": listed, "summaries": len(summaries),
}))
"""


def test_inspect_reads_the_export_back(tmp_path: Path) -> None:
    python = inspect_python()
    if python is None:
        pytest.skip("skipped: inspect_ai is not installed (INSPECT_PYTHON names a Python that has it)")
    made = Directory(tmp_path / "e", ["a", "b"], 2)
    events = [{"type": "tool_call", "id": "1", "tool": "read", "arguments": {"p": 1}}, {"type": "tool_result", "id": "1", "ok": True, "output": "x"}]
    made.trial("a", 1, judgment("pass"), files={"events.jsonl": b"\n".join(json.dumps(e).encode() for e in events)})
    made.trial("a", 2, judgment("fail", "timeout"), outcome(stop_reason="output-limit"))
    made.trial("b", 1, judgment("void", cause="model-service"), files={"stdout.bin": HOSTILE.encode("utf-8", "replace")})
    made.seal()
    folder = tmp_path / "logs"
    folder.mkdir()
    log = folder / inspect_log_name(made.plan)
    log.write_bytes(inspect_log(reader(made.path)))
    found = subprocess.run([python, "-c", READ_BACK, log, tmp_path / "again.eval", folder], capture_output=True, text=True, timeout=120)
    assert found.returncode == 0, found.stderr
    value = json.loads(found.stdout)
    assert value == {
        "status": "error", "samples": [["a", 1, "C", None], ["a", 2, "I", None], ["b", 1, None, "model-service"]],
        "metrics": {"passed_of_planned": 0.25, "passed_of_judged": 0.5}, "tools": ["read"], "again": 3, "listed": ["core-agent"], "summaries": 3,
    }  # fmt: skip


def test_the_name_of_a_log_stays_in_its_folder_whatever_the_plan_says() -> None:
    plan = {"created_at": "../../etc/passwd", "consumer": "../a/b\n", "run_id": "/x/../y\u202e"}
    assert "/" not in inspect_log_name(plan) and inspect_log_name(plan).isprintable()


@pytest.mark.parametrize("make", [junit_xml, markdown_summary, statement, inspect_log])
def test_a_changed_directory_is_refused_by_every_format(tmp_path: Path, make: object) -> None:
    made = mixed(tmp_path / "e")
    (made.path / "trials/read@1/001/stdout.bin").write_bytes(b"three lines\nof test\n")
    with pytest.raises(EvidenceFault, match=r"stdout.bin"):
        make(reader(made.path))
