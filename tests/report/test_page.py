"""The HTML page as a file: self-contained, inert, bounded, and complete without its script."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.records.problems import EvidenceFault
from agent_eval.report import overview
from agent_eval.report import page as page_module
from agent_eval.report.markdown import markdown_summary
from agent_eval.report.markup import script_json, tag, text
from agent_eval.report.page import report_page
from agent_eval.report.tables import summary_table
from agent_eval.report.trial_text import trial_text
from tests.report.synthetic import Directory, judgment, large, mixed, outcome

HOSTILE = "</script><script>window.ran=1</script><img src=x onerror=window.ran=1><!--\u202e\x1b[2J\u2028\x00\ufeff"


class Page(HTMLParser):
    """The elements of a page in order, with attributes, and the text of script and style elements."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, dict[str, str | None], str]] = []
        self.inside = False
        self.feed(data.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag in ("script", "style")
        if self.inside:
            self.raw.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            name, attributes, before = self.raw[-1]
            self.raw[-1] = (name, attributes, before + data)


def trial_data(data: bytes) -> list[dict]:
    page = Page(data)
    return [json.loads(body) for name, attributes, body in page.raw if attributes.get("type") == "application/json"]


def page_of(directory: Path) -> bytes:
    return report_page(EvidenceReader.open(str(directory)))


def test_nothing_is_loaded_and_no_handler_is_inline(tmp_path: Path) -> None:
    data = page_of(mixed(tmp_path / "e").path)
    page = Page(data)
    for name, attributes in page.elements:
        assert name not in ("link", "img", "iframe", "object", "embed", "form", "base", "video", "audio")
        assert not any(key.startswith("on") or key in ("src", "style", "action", "srcset") for key in attributes), attributes
        assert (attributes.get("href") or "#").startswith("#")
    assert b"http://www.w3.org/2000/svg" in data and data.count(b"http") == data.count(b"http://www.w3.org/2000/svg") + 1  # http-equiv


def test_the_policy_allows_exactly_the_two_inline_parts(tmp_path: Path) -> None:
    page = Page(page_of(mixed(tmp_path / "e").path))
    policy = next(a["content"] for name, a in page.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    executed = [body for name, attributes, body in page.raw if attributes.get("type") is None]
    assert len(executed) == 2
    for body in executed:
        assert base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() in policy
    first = [name for name, _ in page.elements].index("style")
    assert [name for name, _ in page.elements[:first]].count("script") == 0


def test_the_overview_is_complete_without_the_script(tmp_path: Path) -> None:
    data = page_of(mixed(tmp_path / "e").path).decode()
    static = re.sub(r"<script.*?</script>", "", data, flags=re.DOTALL)
    for words in (
        "7 of 12 planned trials passed", "7/9", "edit@1/002", "timeout", "model-service", "Elegance of the answer",
        "resist@1/003: unrun", "61.20 s", "plan_sha256", "Basis of the judgments", "pass^3", "pass@3",
    ):  # fmt: skip
        assert words in static, words
    assert static.count('href="#trial=edit@1/002"') >= 3


def test_every_matrix_cell_of_a_started_trial_links_to_data_of_its_own(tmp_path: Path) -> None:
    data = page_of(mixed(tmp_path / "e").path)
    cells = re.findall(r'<td><a href="#trial=([^"]+)"', data.decode())
    names = [trial["name"] for trial in trial_data(data)]
    assert sorted(cells) == sorted(names) and len(names) == 11


def test_reasons_come_with_what_they_cite(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["a"], 1)
    judged = judgment("fail", "owner-failed")
    judged["failures"][0]["evidence"] = ["trial.json#/outcome/exit_code", "events.jsonl#L2", "trial.json#/nowhere", "gone.bin#L9"]
    made.trial("a", 1, judged, outcome(exit_code=7), {"events.jsonl": b'{"type":"start"}\n{"type":"final","status":"failed"}\n'})
    made.seal()
    cited = trial_data(page_of(made.path))[0]["failures"][0]["evidence"]
    assert cited == [
        ["trial.json#/outcome/exit_code", "7"],
        ["events.jsonl#L2", '{"type":"final","status":"failed"}'],
        ["trial.json#/nowhere", ""],
        ["gone.bin#L9", ""],
    ]


def test_hostile_evidence_stays_text_everywhere(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["a"], 1, argv=["run", HOSTILE], subject={"name": HOSTILE, HOSTILE: [HOSTILE]}, consumer=HOSTILE)
    made.plan["cases"][0] |= {"scope": HOSTILE, "not_scored": [HOSTILE]}
    judged = judgment("fail", HOSTILE, detail=HOSTILE)
    judged["checks"] = [{"id": HOSTILE, "status": HOSTILE, "detail": HOSTILE, "evidence": []}]
    made.trial(
        "a", 1, judged, outcome(stop_steps=[{"signal": HOSTILE, "at_s": 0.5}]),
        {"stdout.bin": HOSTILE.encode() * 40, "stderr.bin": b"\xff\xfe" + HOSTILE.encode(),
         "events.jsonl": json.dumps({"type": HOSTILE, "text": HOSTILE}).encode() + b"\n<script>\n"},
        identity={"before": [{"path": HOSTILE, "role": HOSTILE, "sha256": HOSTILE}], "after": [], "reused": []},
        witness=[{"at_s": 0.1, "name": HOSTILE}], own={HOSTILE: HOSTILE},
    )  # fmt: skip
    made.seal(made.summary() | {"not_scored": [HOSTILE], "verdict": HOSTILE, "limits_reached": {HOSTILE: 1}, "basis": {HOSTILE: {"passed": 1}}})
    data = page_of(made.path).decode()
    assert "<script>window" not in data and "<img" not in data and "</script><script>w" not in data
    for character in "\u202e\x1b\u2028\x00\ufeff":
        assert character not in data
    page = Page(data.encode())
    assert sum(name == "script" for name, _ in page.elements) == 2
    assert "\\u003c/script" in data and "&lt;img src=x" in data


@pytest.mark.parametrize("data", [b"\x00" * 5_000_000, b"<" * 5_000_000, b"\\\"" * 2_000_000, "\u202e".encode() * 1_000_000, b"x" * 5_000_000])
def test_long_output_is_cut_with_its_size_and_path_said(tmp_path: Path, data: bytes) -> None:
    made = Directory(tmp_path / "e", ["a"], 1)
    made.trial("a", 1, judgment("pass"), files={"stdout.bin": data})
    made.seal()
    page = page_of(made.path)
    shown = trial_data(page)[0]["outputs"][0]
    assert len(page) < 500_000
    assert shown["bytes"] == len(data) and shown["omitted"] > 0.9 * len(data)
    assert shown["full"] == str(made.path / "trials/a/001/stdout.bin")
    assert max(len(line) for line in shown["head"].split("\n")) < 15_000


def test_two_thousand_trials_take_twenty_megabytes_on_disk_and_two_hundred_in_memory(two_thousand: Directory) -> None:
    program = (
        "import sys\n"
        "from agent_eval.evidence.reader import EvidenceReader\n"
        "from agent_eval.report.page import report_page\n"
        "data = report_page(EvidenceReader.open(sys.argv[1]))\n"
        # VmHWM is of this program alone; ru_maxrss starts with what the process was forked from.
        "peak = next(line for line in open('/proc/self/status') if line.startswith('VmHWM'))\n"
        "print(len(data), peak.split()[1])\n"
    )
    found = subprocess.run([sys.executable, "-c", program, str(two_thousand.path)], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    size_bytes, rss_kib = map(int, found.stdout.split())
    assert size_bytes < 20_000_000
    assert rss_kib < 200 * 1024


def test_thousands_of_cases_stay_bounded(tmp_path: Path) -> None:
    data = page_of(large(tmp_path / "e", 800, 1, 50).path)
    assert len(data) < 5_000_000
    assert b"650 more are in the matrix" in data


def matrix_of(data: bytes) -> tuple[list[str], list[str], str]:
    """Cases, linked trials and the words below of the matrix."""
    text = data.decode()
    start = text.index('<section id="matrix"')
    found = text[start : text.index("</section>", start)]
    return re.findall(r'<th scope="row">([^<]+)</th>', found), re.findall(r'href="#trial=([^"]+)"', found), found[found.rindex("<p") :]


def test_a_matrix_beyond_what_a_browser_lays_out_shows_the_worst_cases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = large(tmp_path / "e", 12, 4, 50)
    whole = matrix_of(page_of(made.path))
    assert whole[0] == made.cases and len(whole[1]) == 48 and "summary.json" not in whole[2]
    monkeypatch.setattr(overview, "MAX_MATRIX_CELLS", 23)
    shown, linked, note = matrix_of(page_of(made.path))
    shares = {case: sum(r["judgment"]["verdict"] == "pass" for r in made.records if r["case_id"] == case) for case in made.cases}
    assert shown == [case for case in made.cases if case in shown] and len(shown) == 5
    assert max(shares[case] for case in shown) <= min(shares[case] for case in made.cases if case not in shown)
    assert len(linked) == 20 and "7 more cases with a passed share no smaller; all are in summary.json" in note


def test_a_trial_without_details_in_the_page_has_no_link_in_the_matrix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = large(tmp_path / "e", 6, 5, 50)
    monkeypatch.setattr(page_module, "MAX_LISTED_TRIALS", 9)
    data = page_of(made.path)
    names = [trial["name"] for trial in trial_data(data)]
    assert len(names) == 9
    assert sorted(matrix_of(data)[1]) == sorted(names)


def test_a_record_of_another_shape_is_named_and_not_a_traceback(tmp_path: Path) -> None:
    for index, broken in enumerate(({"verdict": "great"}, {}, "pass", None)):
        made = Directory(tmp_path / str(index), ["a"], 1)
        made.trial("a", 1, judgment("pass"))
        record = made.records[0] | {"judgment": broken}
        (made.path / "trials/a/001/trial.json").write_text(json.dumps(record))
        made.seal()
        with pytest.raises(EvidenceFault, match=r"trials/a/001/trial.json"):
            page_of(made.path)


def test_odd_types_in_a_record_are_shown_and_break_nothing(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["a"], 1)
    judged = judgment("fail", "x") | {"failures": [{"reason": {"a": 1}, "detail": ["b"], "evidence": [1, None]}, 7], "checks": [None, {"id": 1}]}
    odd = outcome(wall_s="soon", stop_steps=[None, {"at_s": "x"}], tree={"leaked": "many", "unreaped": [[]]}, stdout=None, max_rss_bytes="a lot")
    made.trial("a", 1, judged, odd, identity={"before": "x", "after": 5}, scratch=[], witness={"a": 1}, request=None)
    made.seal(made.summary() | {"basis": {"recomputed": 5}, "leaks": [], "limits_reached": "none", "not_scored": "x", "reliability": "x"})
    assert trial_data(page_of(made.path))[0]["name"] == "a/001"


def test_a_summary_that_disagrees_with_the_records_is_refused(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["a"], 2)
    made.trial("a", 1, judgment("fail", "timeout"))
    made.seal(made.summary() | {"passed": 2, "failed": 0, "unrun": 0})
    with pytest.raises(EvidenceFault, match="passed is 2, the trials' records say 0"):
        page_of(made.path)


def test_a_changed_file_is_refused_before_anything_is_shown(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    target = made.path / "trials/read@1/001/stdout.bin"
    target.write_bytes(b"other")
    with pytest.raises(EvidenceFault, match=r"stdout.bin: changed"):
        page_of(made.path)


def test_the_same_evidence_gives_the_same_bytes(tmp_path: Path) -> None:
    made = mixed(tmp_path / "e")
    assert page_of(made.path) == page_of(made.path)


def test_markup_escapes_by_type() -> None:
    assert tag("p", "<b>", tag("i", "&"), title='"\'<') == '<p title="&quot;&#x27;&lt;">&lt;b&gt;<i>&amp;</i></p>'
    assert text("\u202e") == "\\u202e"
    assert tag("input", disabled=True, id=None, hidden=False) == "<input disabled>"


def test_script_json_cannot_end_its_element() -> None:
    value = {"a": "</script><!-- & > \u2028"}
    written = script_json(value)
    assert "<" not in written and ">" not in written and "&" not in written and "\u2028" not in written
    assert json.loads(written) == value
    with pytest.raises(ValueError, match="JSON"):
        script_json(float("nan"))


def test_numbers_that_somebody_else_wrote_may_be_of_any_length_and_script(tmp_path: Path) -> None:
    made = Directory(tmp_path / "e", ["case"], 1)
    odd = ["9" * 5000, "\u0663", "\u00b2", "-1", ""]
    pointers = [f"stdout.bin#L{text}" for text in odd] + [f"trial.json#/identity/before/{text}" for text in odd]
    judged = judgment("fail", "owner-failed")
    judged["failures"][0]["evidence"] = pointers
    made.trial("case", 1, judged, files={"stdout.bin": b"line\n"}, identity={"before": [1, 2], "after": [], "reused": []})
    summary = made.summary()
    for name in ("pass_at_k", "pass_hat_k"):
        summary["cases"]["case"][name] = {"1": 0.0, **dict.fromkeys(odd, 0.5)}
    made.seal(summary)
    reader = EvidenceReader.open(str(made.path))
    assert b"case/001" in report_page(reader)
    assert "pass@1 0.000" in markdown_summary(reader).decode()
    table = summary_table(reader.plan, summary, ())
    assert "case" in table and "9999" not in table
    assert trial_text(next(reader.trials()), b"{}")
