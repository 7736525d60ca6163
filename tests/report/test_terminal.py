"""The progress display: a live line on a terminal, plain lines elsewhere, and nothing raw in either."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios

import pytest

from agent_eval.report.terminal import Progress, use_color
from agent_eval.report.visible_text import cells


class Clock:
    """A monotonic clock that moves when the test says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Terminal:
    """A real pseudo-terminal of a given width."""

    def __init__(self, columns: int) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream = os.fdopen(slave, "w", encoding="utf-8")

    def text(self) -> str:
        self.stream.flush()
        os.set_blocking(self.master, False)
        found = b""
        while True:
            try:
                found += os.read(self.master, 65_536)
            except OSError:
                return found.decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self.master)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return monkeypatch


def frames(text: str) -> list[str]:
    return [frame for frame in text.split("\r\x1b[2K") if frame]


@pytest.mark.usefixtures("environment")
def test_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    progress = Progress(stream, 3)
    progress.started("read@1", 1)
    progress.finished("read@1", 1, "pass", (), 0.25)
    progress.tick()
    progress.finished("edit@1", 1, "fail", ("timeout", "missing-report"), 61.0)
    progress.finished("edit@1", 2, "void", ("interrupted",), None)
    progress.close()
    assert stream.getvalue().splitlines() == [
        "[1/3] pass read@1/001 0.250 s",
        "[2/3] fail edit@1/001 61.00 s  timeout, missing-report",
        "[3/3] interrupted edit@1/002 -",
    ]


@pytest.mark.usefixtures("environment")
def test_hostile_words_never_reach_the_stream_raw() -> None:
    stream = io.StringIO()
    Progress(stream, 1, "never").finished("a\x1b[2J\u202e", 1, "fail", ("x\x07\x1b]8;;http://evil\x1b\\",), 1.0)
    assert "\x1b" not in stream.getvalue() and "\u202e" not in stream.getvalue() and "\x07" not in stream.getvalue()
    assert "\\x1b[2J\\u202e" in stream.getvalue()


@pytest.mark.usefixtures("environment")
def test_the_live_line_counts_and_is_redrawn_at_most_ten_times_a_second() -> None:
    terminal, clock = Terminal(120), Clock()
    progress = Progress(terminal.stream, 100, clock_s=clock)
    for number in range(1, 51):
        progress.started("read@1", number)
        progress.finished("read@1", number, "pass" if number % 2 else "fail", (), 0.01)
        clock.now_s += 0.01
        progress.tick()
    seen = frames(terminal.text())
    terminal.close()
    assert 5 <= len(seen) <= 6
    assert "read@1" not in seen[-1] or "50/100" in seen[-1]
    last = seen[-1]
    assert "/100" in last and "passed" in last and "failed" in last and "0 void" in last and "left" in last


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("columns", [20, 40, 60, 80, 132])
def test_the_live_line_fits_its_terminal(columns: int) -> None:
    terminal, clock = Terminal(columns), Clock()
    progress = Progress(terminal.stream, 2_000, "never", clock_s=clock)
    for number in range(1, 6):
        progress.started("a-case-with-a-rather-long-name@1", number)
        clock.now_s += 0.2
        progress.finished("a-case-with-a-rather-long-name@1", number, "void", ("model-service",), 0.2)
    progress.started("北京北京北京北京北京北京@1", 1)
    clock.now_s += 1
    progress.tick()
    seen = frames(terminal.text())
    terminal.close()
    assert seen and all(cells(frame) < columns for frame in seen)
    if columns >= 80:
        assert "北京" in seen[-1]


@pytest.mark.usefixtures("environment")
def test_closing_takes_the_live_line_away_and_ends_the_display() -> None:
    terminal = Terminal(80)
    progress = Progress(terminal.stream, 1)
    progress.started("a", 1)
    progress.close()
    progress.finished("a", 1, "pass", (), 1.0)
    text = terminal.text()
    terminal.close()
    assert text.endswith("\r\x1b[2K") and text.count("\r\x1b[2K") == 2


@pytest.mark.usefixtures("environment")
def test_quiet_shows_nothing() -> None:
    stream = io.StringIO()
    progress = Progress(stream, 1, "always", quiet=True)
    progress.started("a", 1)
    progress.finished("a", 1, "fail", ("timeout",), 1.0)
    progress.close()
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("mode", "terminal", "variables", "expected"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_when_colour_is_used(mode: str, terminal: bool, variables: dict[str, str], expected: bool) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    assert use_color(mode, Stream(), variables) is expected


def test_no_color_takes_the_colour_from_a_real_terminal(environment: pytest.MonkeyPatch) -> None:
    for value, coloured in (("", True), ("1", False)):
        environment.setenv("NO_COLOR", value)
        terminal = Terminal(80)
        progress = Progress(terminal.stream, 1)
        progress.finished("a", 1, "fail", (), 1.0)
        text = terminal.text()
        terminal.close()
        assert ("\x1b[31m" in text) is coloured


def test_a_dumb_terminal_gets_plain_lines(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("TERM", "dumb")
    terminal = Terminal(80)
    Progress(terminal.stream, 1).finished("a", 1, "pass", (), 1.0)
    text = terminal.text()
    terminal.close()
    assert text == "[1/1] pass a/001 1.00 s\r\n"


@pytest.mark.usefixtures("environment")
def test_a_reader_that_went_away_ends_the_display_and_not_the_run() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    progress = Progress(stream, 2)
    progress.finished("a", 1, "pass", (), 1.0)
    progress.finished("a", 2, "pass", (), 1.0)
    progress.close()
    with pytest.raises(BrokenPipeError):
        stream.close()


@pytest.mark.usefixtures("environment")
def test_a_stream_that_cannot_encode_a_name_shows_it_escaped() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    Progress(stream, 1).finished("北", 1, "pass", (), 1.0)
    assert raw.getvalue() == b"[1/1] pass \\u5317/001 1.00 s\n"
