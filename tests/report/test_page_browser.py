"""The page in a real headless Chromium: links and filters work, nothing complains, hostile evidence is inert."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_eval.evidence.reader import EvidenceReader
from agent_eval.report.page import report_page
from tests.report import chromium
from tests.report.synthetic import Directory, judgment, mixed, outcome

HOSTILE = (
    "</script><script>window.ran=1;document.title='ran'</script><img src=http://127.0.0.1:9/x onerror=window.ran=1>"
    "<svg onload=window.ran=1><a href=javascript:window.ran=1>x</a>'\"`\u202e\u2066\x1b]8;;http://127.0.0.1:9\x07 {{7*7}} \\u003cscript\\u003e"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    path = chromium.find()
    if path is None:
        pytest.skip("skipped: no chromium on this machine (Debian: apt-get install chromium)")
    with chromium.Browser(path) as started:
        yield started


def write(made: Directory, target: Path) -> str:
    target.write_bytes(report_page(EvidenceReader.open(str(made.path))))
    return target.as_uri()


def assert_quiet(browser: chromium.Browser, url: str) -> None:
    assert browser.complaints() == []
    assert browser.requests() == [url]


def visible(browser: chromium.Browser) -> int:
    return browser.evaluate("document.querySelectorAll('#trials table.list tbody tr:not([hidden])').length")


def choose(browser: chromium.Browser, identifier: str, value: str) -> None:
    browser.evaluate(
        f"(() => {{ const e = document.getElementById({json.dumps(identifier)}); e.value = {json.dumps(value)};"
        " e.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )


def test_matrix_links_open_their_trial_and_back_returns(browser: chromium.Browser, tmp_path: Path) -> None:
    url = write(mixed(tmp_path / "e"), tmp_path / "page.html")
    browser.open(url)
    names = browser.evaluate("[...document.querySelectorAll('#grid a')].map(a => a.getAttribute('aria-label').split(':')[0])")
    assert len(names) == 11
    for index, name in enumerate(names):
        browser.evaluate(f"document.querySelectorAll('#grid a')[{index}].click()")
        browser.evaluate("new Promise(done => setTimeout(done, 0))")
        assert browser.evaluate("document.querySelector('#trial h2').firstChild.textContent") == name
        assert browser.evaluate("document.getElementById('overview').hidden") is True
        browser.evaluate("history.back()")
        browser.evaluate("new Promise(done => setTimeout(done, 50))")
        assert browser.evaluate("document.getElementById('overview').hidden") is False
    assert browser.complaints() == []


def test_a_trial_shows_reasons_timeline_output_and_hex(browser: chromium.Browser, tmp_path: Path) -> None:
    url = write(mixed(tmp_path / "e"), tmp_path / "page.html")
    browser.open(f"{url}#trial=edit@1/002")
    shown = browser.evaluate("document.getElementById('trial').innerText")
    for words in ("timeout", "missing-report", "no report after 60 s", "rests on trial.json#/outcome/exit_code", "signal 9, stopped by the harness: timeout",
                  "2 leaked, 1 escaped, 2 killed", "61.20 s of 60.00 s", "Traceback: \\x1b[31mred\\x1b[0m", "limit 60 s"):  # fmt: skip
        assert words in shown, words
    assert browser.evaluate("document.querySelector('svg.timeline').getAttribute('aria-label')") == (
        "Ran 61.2 s. SIGTERM at 60.00 s, SIGCONT at 60.00 s, SIGKILL at 61.00 s"
    )
    browser.open(f"{url}#trial=repair%401/001")
    assert "00000040  40 41 42 43 44 45 46 47" in browser.evaluate("document.querySelector('pre.hex').textContent")
    browser.evaluate("[...document.querySelectorAll('#trial .bar button')].find(b => b.textContent === 'Next').click()")
    browser.evaluate("new Promise(done => setTimeout(done, 0))")
    assert browser.evaluate("document.title") == "pass repair@1/002"
    assert browser.complaints() == []


def test_filters_and_search_narrow_the_list(browser: chromium.Browser, tmp_path: Path) -> None:
    browser.open(write(mixed(tmp_path / "e"), tmp_path / "page.html"))
    assert visible(browser) == 11
    choose(browser, "f-verdict", "fail")
    assert visible(browser) == 2
    choose(browser, "f-case", "edit@1")
    assert visible(browser) == 1
    choose(browser, "f-verdict", "")
    assert visible(browser) == 3
    choose(browser, "f-case", "")
    choose(browser, "f-reason", "nonzero-exit")
    assert visible(browser) == 1
    assert browser.evaluate("document.getElementById('f-count').textContent") == "1 of 11 trials"
    browser.evaluate("document.getElementById('f-clear').click()")
    assert visible(browser) == 11
    choose(browser, "f-text", "Traceback: \\x1b[31m")
    assert visible(browser) == 1, "captured output is searched too"
    choose(browser, "f-text", "no such words")
    assert visible(browser) == 0
    assert browser.complaints() == []


def test_the_keyboard_reaches_everything(browser: chromium.Browser, tmp_path: Path) -> None:
    browser.open(write(mixed(tmp_path / "e"), tmp_path / "page.html"))
    browser.key("Tab", 9)
    assert browser.evaluate("document.activeElement.textContent") == "Skip to the trials"
    browser.evaluate("document.querySelector('#grid a').focus()")
    browser.key("ArrowDown", 40)
    browser.key("ArrowRight", 39)
    assert browser.evaluate("document.activeElement.getAttribute('aria-label')").startswith("edit@1/002: fail")
    browser.key("Enter", 13, "\r")
    browser.evaluate("new Promise(done => setTimeout(done, 0))")
    assert browser.evaluate("document.activeElement.tagName + ' ' + document.activeElement.firstChild.textContent") == "H2 edit@1/002"
    browser.key("Escape", 27)
    assert browser.evaluate("document.getElementById('trial').hidden") is True
    assert browser.evaluate("document.activeElement.getAttribute('aria-label')").startswith("edit@1/002")
    unreachable = browser.evaluate("[...document.querySelectorAll('a:not(#grid a), button, input, select')].filter(e => e.tabIndex < 0).length")
    assert unreachable == 0


def hostile(path: Path) -> Directory:
    made = Directory(path, ["a"], 2, argv=["run", HOSTILE], subject={"name": HOSTILE, HOSTILE: HOSTILE})
    made.plan["cases"][0] |= {"scope": HOSTILE, "not_scored": [HOSTILE]}
    judged = judgment("fail", HOSTILE, detail=HOSTILE)
    judged["checks"] = [{"id": HOSTILE, "status": HOSTILE, "detail": HOSTILE, "evidence": []}]
    entry = {"path": HOSTILE, "type": "file", "mode": "0644", "size_bytes": 3, "sha256": "0" * 64}
    before = {"format": "agent-eval/workspace/1", "entries": [], "hashed_bytes": 0, "limit": None}
    events = [{"type": "tool_call", "id": "1", "tool": HOSTILE, "arguments": {HOSTILE: HOSTILE}},
              {"type": "tool_result", "id": "1", "ok": True, "exit_code": 0, "output": HOSTILE}]  # fmt: skip
    made.trial(
        "a", 1, judged, outcome(stop_steps=[{"signal": HOSTILE, "at_s": 0.5}]),
        {"stdout.bin": HOSTILE.encode() * 20 + b"\n" + b"<" * 300_000, "stderr.bin": b"\xff\x00" + HOSTILE.encode(),
         "owner-report.json": json.dumps({"passed": HOSTILE}).encode(),
         "events.jsonl": b"\n".join(json.dumps(event).encode() for event in events),
         "workspace-before.json": json.dumps(before).encode(), "workspace-after.json": json.dumps(before | {"entries": [entry]}).encode()},
        identity={"before": [{"path": HOSTILE, "role": HOSTILE, "sha256": HOSTILE}], "after": [], "reused": []}, own={HOSTILE: HOSTILE},
    )  # fmt: skip
    made.trial("a", 2, judgment("void", cause=HOSTILE))
    made.seal(made.summary() | {"not_scored": [HOSTILE], "verdict": HOSTILE, "limits_reached": {HOSTILE: 1}})
    return made


def test_hostile_evidence_runs_nothing_and_asks_for_nothing(browser: chromium.Browser, tmp_path: Path) -> None:
    url = write(hostile(tmp_path / "e"), tmp_path / "page.html")
    for hash_ in ("", "#trial=a/001", "#trial=a/002", "#trial=%E0%A4%A", "#<img src=x onerror=window.ran=1>"):
        browser.open(url + hash_)
        choose(browser, "f-text", HOSTILE)
        browser.evaluate("document.querySelectorAll('#trial details').forEach(d => { d.open = true; })")
        browser.evaluate("new Promise(done => setTimeout(done, 100))")
        assert browser.evaluate("typeof window.ran") == "undefined"
        assert browser.evaluate("document.querySelectorAll('img, iframe, script[src], [onload], [onerror], a[href^=javascript]').length") == 0
        assert browser.evaluate("[...document.scripts].filter(s => s.type === '').length") == 1
        assert_quiet(browser, url)
        assert "\u202e" not in browser.evaluate("document.documentElement.textContent")
    browser.open(url + "#trial=a/001")
    shown = browser.evaluate("document.getElementById('trial').textContent")
    assert "</script><script>window.ran=1" in shown and "\\u202e\\u2066\\x1b]8;;" in shown


def test_a_script_added_to_the_page_does_not_run(browser: chromium.Browser, tmp_path: Path) -> None:
    """The policy, and not only the escaping, stands in the way."""
    target = tmp_path / "page.html"
    write(mixed(tmp_path / "e"), target)
    changed = target.read_bytes().replace(b"</body>", b"<script>window.ran=1</script><img src=http://127.0.0.1:9/x></body>")
    target.write_bytes(changed)
    browser.open(target.as_uri())
    browser.evaluate("new Promise(done => setTimeout(done, 100))")
    assert browser.evaluate("typeof window.ran") == "undefined"
    assert any("Content Security Policy" in complaint for complaint in browser.complaints())


def test_two_thousand_trials_open_within_two_seconds(browser: chromium.Browser, two_thousand: Directory, tmp_path: Path) -> None:
    url = write(two_thousand, tmp_path / "page.html")
    best_s = min(browser.open(url) for _ in range(3))
    assert best_s < 2.0
    assert visible(browser) == 2_000
    spent_ms = browser.evaluate(
        "(() => { const began = performance.now(); const e = document.getElementById('f-verdict'); e.value = 'fail';"
        " e.dispatchEvent(new Event('input')); document.body.offsetHeight; return performance.now() - began; })()"
    )
    assert spent_ms < 1_000
    assert 0 < visible(browser) < 1_000
    assert_quiet(browser, url)


CONTRAST = """
(() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const rgb = (css) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1); return canvas.getImageData(0, 0, 1, 1).data; };
  const light = (c) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
  const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (rgb(c)[3] === 255) return c; } return 'white'; };
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    if (e.closest('svg, script, [hidden], .visually-hidden, .skip') || !e.checkVisibility()) continue;
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const style = getComputedStyle(e), a = light(rgb(style.color)), b = light(rgb(ground(e)));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push([e.tagName, e.className, e.textContent.slice(0, 30), ratio.toFixed(2)]);
  }
  return low;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_contrast_meets_wcag_aa_and_a_phone_does_not_scroll_sideways(browser: chromium.Browser, tmp_path: Path, dark: bool) -> None:
    url = write(mixed(tmp_path / "e"), tmp_path / "page.html")
    for hash_ in ("", "#trial=edit@1/002"):
        browser.open(url + hash_, dark=dark)
        assert browser.evaluate(CONTRAST) == []
        browser.open(url + hash_, width=360, height=740, dark=dark)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360
        browser.screenshot(tmp_path / "phone.png")
        assert (tmp_path / "phone.png").stat().st_size > 5_000


def test_print_shows_all_and_hides_the_controls(browser: chromium.Browser, tmp_path: Path) -> None:
    browser.open(write(mixed(tmp_path / "e"), tmp_path / "page.html"), dark=True)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.evaluate("document.getElementById('filters').checkVisibility()") is False
    assert browser.evaluate("getComputedStyle(document.querySelector('.tall')).maxHeight") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")
