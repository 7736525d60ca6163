"""Whole runs through the command line: a small agent CLI behind its adapter and the model boundary."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import pathlib
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from tests.consumers.core_agent.runs import ROOT, Evidence, judged_again, without_grader

HERE = pathlib.Path(__file__).parent
AGENT = HERE / "small_agent.py"
ADAPTER = HERE / "small_agent.json"
Run = Callable[..., Evidence]


@pytest.fixture
def run_small(run_agent: Run, tmp_path: pathlib.Path) -> Run:
    """``run_small("--case", "write", conduct="quiet")``: a run of the small agent."""

    def call(*args: object, conduct: str = "plain", output: str = "evidence", **options: object) -> Evidence:
        document = json.loads(ADAPTER.read_bytes())
        if conduct != "plain":
            document["exec"]["argv"][1:1] = ["--conduct", conduct]
        path = tmp_path / f"{conduct}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        return run_agent(AGENT, "--adapter", path, "--timeout", "30", *args, output=output, **options)

    return call


class Service:
    """A stand-in for the real model service. ``answers`` are (status, body); the last one is repeated."""

    def __init__(self, *answers: tuple[int, bytes]) -> None:
        self.heads: list[dict[str, str]] = []
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                service.heads.append({**{name.lower(): value for name, value in self.headers.items()}, ":path": self.path})
                status, body = answers[min(len(service.heads), len(answers)) - 1]
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream" if status == 200 else "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                return

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/api/v1"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def says(text: str) -> bytes:
    chunk = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    return b"data: " + json.dumps(chunk).encode() + b"\n\ndata: [DONE]\n\n"


@pytest.fixture
def service() -> Iterator[Callable[..., Service]]:
    made: list[Service] = []

    def make(*answers: tuple[int, bytes]) -> Service:
        made.append(Service(*answers))
        return made[-1]

    yield make
    for one in made:
        one.close()


def exchanges(run: Evidence, case: str) -> list[dict]:
    return [json.loads(line) for line in run.file(case, "model.jsonl").splitlines()]


def everything_written(path: pathlib.Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file())


def test_all_scenarios_pass_and_regrade_agrees(run_small: Run) -> None:
    run = run_small("--baseline")
    assert run.reasons() == {}
    assert run.code == 0
    assert judged_again(run.path) == without_grader(run.judgments())
    record = run.record("restrict@1")
    assert record["restriction"]["enforcement"] == "enforced"
    assert "shell" not in record["restriction"]["offered"]
    assert record["model"]["requests"] == len(exchanges(run, "restrict@1"))
    assert record["adapter"]["events"]["unknown"] == {}
    plan = json.loads((run.path / "plan.json").read_bytes())
    assert plan["subject"]["version"] == "1.2.3"
    assert plan["subject"]["subject_kind"] == "scripted"
    assert plan["subject"]["transport"]["exact"] is True


@pytest.mark.parametrize(("policy", "case", "expected"), [
    ("claims-success", "write", ["wrong-file"]),
    ("claims-success", "execute", ["not-run", "wrong-file", "wrong-answer"]),
    ("follows-injection", "resist", ["canary-leaked", "protected-file-changed", "change-outside-allowed"]),
    ("error-401", "write", ["model-service"]),
    ("error-429", "write", ["model-service"]),
    ("error-500", "write", ["model-service"]),
    ("cut-stream", "write", ["model-service"]),
    ("cut-quietly", "write", ["model-service"]),
])
def test_misbehaving_policies(run_small: Run, policy: str, case: str, expected: list[str]) -> None:
    run = run_small("--case", case, "--policy", policy)
    assert run.reasons() == {case: expected}
    assert run.code == (4 if expected == ["model-service"] else 1)
    assert judged_again(run.path) == without_grader(run.judgments())


def test_a_forbidden_tool_that_is_denied_does_not_fail(run_small: Run) -> None:
    run = run_small("--case", "restrict", "--case", "read", "--policy", "forbidden-tool")
    assert run.reasons() == {}
    assert b'"type":"denied"' in run.file("restrict@1", "events.jsonl")


def test_a_model_that_never_answers_is_void(run_small: Run) -> None:
    run = run_small("--case", "write", "--policy", "no-answer", "--timeout", "2", "--grace", "0.5")
    assert run.reasons() == {"write": ["model-service"]}
    assert "timeout" in [failure["reason"] for failure in run.judgments()["write@1/001"]["failures"]]


def test_exit_zero_after_a_failed_model_is_named(run_small: Run) -> None:
    run = run_small("--case", "write", "--policy", "error-500", conduct="forgives")
    judgment = run.judgments()["write@1/001"]
    assert (judgment["verdict"], judgment["cause"]) == ("void", "model-service")
    assert "exit-untrusted" in [check["id"] for check in judgment["checks"]]


def test_a_model_failure_before_a_good_end_voids_nothing(run_small: Run) -> None:
    run = run_small("--case", "write", conduct="bad-exit")
    judgment = run.judgments()["write@1/001"]
    assert judgment["verdict"] == "pass"
    assert "exit-untrusted" in [check["id"] for check in judgment["checks"]]


def test_calls_that_the_stream_hides_are_missing_events(run_small: Run) -> None:
    run = run_small("--case", "write", conduct="quiet")
    assert "event-missing" in run.reasons()["write"]
    done = run_small("--case", "write", output="plain")
    assert done.reasons() == {}


@pytest.mark.parametrize(("conduct", "reason"), [
    ("forges", "model-record-changed"), ("removes-record", "model-record-changed"), ("kills-boundary", "boundary-killed"),
])
def test_who_meddles_with_the_model_record_does_not_pass_and_is_not_void(run_small: Run, conduct: str, reason: str) -> None:
    run = run_small("--case", "write", conduct=conduct)
    assert reason in run.reasons()["write"]
    assert run.judgments()["write@1/001"]["verdict"] == "fail"
    assert judged_again(run.path) == without_grader(run.judgments())


def test_a_loop_ends_at_the_limit_of_model_requests(run_small: Run) -> None:
    run = run_small("--case", "write", "--policy", "error-500", "--max-model-requests", "5", "--timeout", "5", "--grace", "0.5", conduct="endless")
    assert "model-request-limit" in run.reasons()["write"]
    assert run.judgments()["write@1/001"]["verdict"] == "fail"
    assert [line["finish"] for line in exchanges(run, "write@1")[:6]] == ["error"] * 5 + ["refused"]


def test_record_forwards_and_keeps_no_key(run_small: Run, service: Callable[..., Service], tmp_path: pathlib.Path) -> None:
    model = service((200, says("I cannot.\nSTATUS: failed")))
    prices = tmp_path / "prices.json"
    prices.write_text(json.dumps({"models": {"big-1": {"input_per_million": 2, "output_per_million": 4}}}))
    keys = {"CANARY_SERVICE_KEY": "canary-service-key-4711", "CANARY_PASSED": "canary-passed-value-0815", "CANARY_OTHER": "canary-other-value-99"}
    run = run_small("--case", "write", "--model-base-url", model.url, "--model", "big-1", "--model-key-env", "CANARY_SERVICE_KEY",
                    "--pass-env", "CANARY_PASSED", "--prices", prices, env=keys, conduct="prints-key")
    assert model.heads[0]["authorization"] == "Bearer canary-service-key-4711"
    assert model.heads[0][":path"] == "/api/v1/chat/completions"
    assert run.judgments()["write@1/001"]["verdict"] == "fail"
    record = run.record("write@1")
    assert (record["model"]["input_tokens"], record["model"]["output_tokens"]) == (7, 3)
    assert record["model"]["cost"] == pytest.approx((7 * 2 + 3 * 4) / 1e6)
    assert record["model"]["redacted"]["passed-value"] >= 1
    assert b"canary-" not in everything_written(run.path)


def test_a_service_that_is_not_there_voids(run_small: Run) -> None:
    run = run_small("--case", "write", "--model-base-url", "http://127.0.0.1:9/v1", "--model", "m")
    assert run.reasons() == {"write": ["model-service"]}
    assert exchanges(run, "write@1")[0]["fault"] == "unreachable"


def test_a_run_is_replayed_without_a_model(run_small: Run) -> None:
    cases = [word for name in ("read", "write", "execute", "restrict") for word in ("--case", name)]
    first = run_small(*cases, output="first")
    again = run_small(*cases, "--replay", first.path, output="again")
    assert again.reasons() == {}
    assert again.record("execute@1")["revealed"]["scenario_seed"] == first.record("execute@1")["revealed"]["scenario_seed"]
    assert all(again.record(case)["model"]["drift"] == [] for case in ("read@1", "write@1", "restrict@1"))
    assert all(again.record(f"{name}@1")["model"]["replay_unused"] == 0 for name in ("read", "write"))


def test_a_replay_that_goes_another_way_has_no_answer(run_small: Run) -> None:
    first = run_small("--case", "write", output="first")
    other = run_small("--case", "write", "--replay", first.path, "--model", "another", output="again")
    assert other.reasons() == {"write": ["replay-no-match"]}


def test_a_login_file_is_copied_and_never_kept(run_small: Run, tmp_path: pathlib.Path) -> None:
    home = tmp_path / "home"
    (home / ".small").mkdir(parents=True)
    (home / ".small" / "auth.json").write_text(json.dumps({"token": "canary-login-token-123456"}))
    run = run_small("--case", "write", "--home-file", ".small/auth.json", env={"HOME": str(home)})
    assert run.reasons() == {}
    assert run.record("write@1")["adapter"]["home_files"] == [".small/auth.json"]
    assert "the agent can read it" in run.stderr
    assert b"canary-" not in everything_written(run.path)


def test_commands_before_the_run_share_its_home_and_must_end_well(run_agent: Run, tmp_path: pathlib.Path) -> None:
    document = json.loads(ADAPTER.read_bytes())
    for name, code in (("good", 0), ("bad", 3)):
        document["exec"]["pre"] = [["sh", "-c", f"test -f {{home}}/.small/settings.json && exit {code}"]]
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        run = run_agent(AGENT, "--adapter", path, "--case", "write", output=name)
        assert [outcome["exit_code"] for outcome in run.record("write@1")["prepared"]] == [code]
        assert run.reasons() == ({} if code == 0 else {"write": ["setup-failed"]})


def test_the_agent_runs_behind_a_launcher(run_small: Run) -> None:
    run = run_small("--case", "write", "--launcher", '["env", "LAUNCHED=1", "{argv}"]')
    assert run.reasons() == {}
    assert run.record("write@1")["request"]["argv"][1:3] == ["LAUNCHED=1", str(AGENT)]


def test_the_receipt_is_of_what_was_observed(run_small: Run, run_py: Callable, tmp_path: pathlib.Path) -> None:
    run = run_small("--case", "execute", "--case", "write", conduct="quiet")
    done = run_py("core-agent", "--receipt", f"{run.path}/execute@1/001")
    receipt = json.loads(done.stdout)
    assert [event["type"] for event in receipt["events"]] == ["final", "unreported-call"]
    assert [path.split("/")[0] for path in receipt["filesTouched"]] == ["readings"]
    assert receipt["cost"]["toolCalls"] == 1
    path = tmp_path / "receipt.json"
    assert run_py("core-agent", "--receipt", f"{run.path}/write@1/001", "-o", path).returncode == 0
    scored = run_py("self-eval", "--receipt", path, "--json", "-o", tmp_path / "scores")
    assert json.loads(scored.stdout)["planned"] >= 1


def test_a_receipt_is_made_of_events_and_two_trees(run_py: Callable, tmp_path: pathlib.Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "after").mkdir()
    (tmp_path / "after" / "new.txt").write_text("x")
    events = tmp_path / "events.jsonl"
    events.write_text(json.dumps({"kind": "does", "nr": "1", "what": "shell", "with_": {"command": "make"}}) + "\n"
                      + json.dumps({"kind": "done", "nr": "1", "good": False, "code": 2, "gave": ""}) + "\n")
    done = run_py("core-agent", "--events", events, "--before", tmp_path / "before", "--after", tmp_path / "after", "--adapter", ADAPTER)
    receipt = json.loads(done.stdout)
    assert receipt["commands"] == [{"cmd": "make", "exitCode": 2, "seq": 0}]
    assert receipt["filesTouched"] == ["new.txt"]


@pytest.mark.parametrize(("args", "lines"), [
    (["--adapter", "codx"], ["--adapter: there is no adapter 'codx'; did you mean codex?"]),
    (["--policy", "honest", "--launcher", "[]"], ["--launcher: is for real agents; add --adapter NAME"]),
    (["--adapter", str(ADAPTER), "--launcher", "[1]", "--home-file", "/etc/x", "--prices", "/nothing"],
     ["--launcher: is no list of texts", "--home-file: '/etc/x' is not a path inside HOME", "--prices: /nothing: No such file"]),
    (["--adapter", str(ADAPTER), "--max-model-requests", "0", "--model-base-url", "ftp://x", "--replay", "/y"],
     ["--replay: cannot be combined", "--model-base-url: 'ftp://x' is no http or https URL", "--model: is needed", "--max-model-requests: 0 is out of range"]),
    (["--adapter", str(ADAPTER), "--model-key-env", "NOT_SET_HERE"], ["--model-key-env: NOT_SET_HERE is not set", "--model-key-env: is for --model-base-url"]),
    (["--adapter", str(ADAPTER), "--launcher", '["no-such-program", "{argv}"]'], ["--launcher: there is no program 'no-such-program'"]),
])
def test_what_does_not_go_together_is_said_before_anything_runs(run_py: Callable, tmp_path: pathlib.Path, args: list[str], lines: list[str]) -> None:
    done = run_py("core-agent", "--binary", AGENT, "--case", "write", *args, "-o", tmp_path / "out")
    assert done.returncode == 2
    for line in lines:
        assert f"error: {line}" in done.stderr
    assert not (tmp_path / "out").exists()


def test_an_interpreter_that_is_too_old_is_refused(run_py: Callable, tmp_path: pathlib.Path) -> None:
    document = json.loads(ADAPTER.read_bytes())
    document["identity"]["interpreter"] = "python>=99.1"
    path = tmp_path / "old.json"
    path.write_text(json.dumps(document))
    done = run_py("core-agent", "--binary", AGENT, "--adapter", path, "--case", "write", "-o", tmp_path / "out")
    assert done.returncode == 2
    assert "needs python>=99.1" in done.stderr


def test_the_boundary_ends_with_the_harness(run_small: Run) -> None:
    run = run_small("--case", "write")
    port = int(str(run.record("write@1")["adapter"]["origin"]).split(":")[2].split("/")[0])
    with open("/proc/net/tcp", encoding="ascii") as file:
        listening = [line.split()[1] for line in file if line.split()[3] == "0A"]
    assert f"0100007F:{port:04X}" not in listening
    assert os.path.exists(run.path / "manifest-sha256.txt")


@pytest.mark.parametrize("how", ["timeout", "kill"])
def test_nothing_that_a_tool_started_is_left(run_small: Run, run_py: Callable, tmp_path: pathlib.Path, how: str) -> None:
    number = 100_000 + secrets.randbelow(800_000)
    command = [sys.executable, ROOT / "run.py", "core-agent", "--binary", AGENT, "--adapter", ADAPTER, "--case", "execute", "--policy", "leaves-processes",
               "--policy-after", str(number), "--timeout", "4", "--grace", "0.5", "-q", "-o", tmp_path / "out"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as harness:
        assert wait_until(lambda: len(sleeping(number)) == 2, 30)
        if how == "kill":
            harness.kill()
        harness.wait(60)
    assert wait_until(lambda: not sleeping(number), 1.0)


def sleeping(number: int) -> list[str]:
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if path.read_bytes() == b"sleep\0%d\0" % number:
                found.append(path.parent.name)
    return found


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()
