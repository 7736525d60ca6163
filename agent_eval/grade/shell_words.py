"""A shell command line as words: which simple commands it runs, and whether its exit code can be trusted.

Owns reading a recorded command line, without running anything and without matching. It
is not a shell: what it cannot read for certain (substitutions, ``eval``, unbalanced
quotes) is kept as ``unclear`` words, and a rule that depends on them is undecided.

Words are compared, never substrings: a rule on substrings once classed "marketing
strategy" as cyber for its "rat".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

Words = tuple[str, ...]

_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh"))
_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\\\n)|(?P<comment>\#[^\n]*)|(?P<redirect>&>>?|\d*(?:<<<|<>|>>|>\||[<>]&?))"""
    r"""|(?P<operator>\|\||&&|;;|\|&|[;|&()\n])|(?P<word>(?:[^\s\\'"|&;()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)""",
    re.DOTALL,
)
_WORD_PART = re.compile(r"""\\(?P<escaped>.)|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\]|\\.)*)\"|(?P<plain>[^\\'"]+)""", re.DOTALL)
_IN_DOUBLE = re.compile(r'\\([$`"\\\n])', re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HEREDOC = re.compile(r"<<-?[ \t]*(?P<quote>['\"]?)(?P<word>[A-Za-z_][A-Za-z0-9_]*)(?P=quote)")
_WORDS = re.compile(r"[^\s;&|()<>`$'\"]+")
_OPENERS = frozenset(("for", "while", "until", "select", "if", "case"))
_CLOSERS = frozenset(("done", "fi", "esac"))
_CONDITIONS = _OPENERS | {"elif", "!"}
_KEYWORDS = _CONDITIONS | _CLOSERS | {"{", "}", "then", "else", "do"}
_SUBSTITUTED = "_substituted_"
# What runs words that are not on the line, or changes what a name runs.
_OPAQUE = frozenset(("eval", "source", ".", "xargs", "alias", "function"))
_MAX_NESTING = 8
_MAX_DOCUMENTS = 64
_MAX_SUBSTITUTIONS = 64
_MAX_COMMANDS = 256
_MAX_SHORT_CHARS = 2048  # longer lines are read again each time: remembering them would hold whole scripts in memory


@dataclass(frozen=True, slots=True)
class Simple:
    """One simple command: ``forms`` are its words as written, and again without assignments and wrappers.

    ``joined`` is the operator before it (``""`` for the first); ``condition`` says that a keyword such
    as ``if``, ``!`` or ``for`` takes its exit code away, or decides whether it runs at all. ``groups`` are numbers of the
    ``(...)``, ``{...}`` and ``if ... fi`` around it, the outermost first.
    """

    forms: tuple[Words, ...]
    joined: str = ""
    condition: bool = False
    groups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class CommandLine:
    """A command line as read.

    ``simple`` holds the commands of the line; ``nested`` the lines that it hands to another shell
    (``sh -c``, a here-document); ``substituted`` those whose output it uses, which lose their exit code.

    From these: ``counted`` are the words of each simple command whose exit code can count, ``every`` of
    each that runs at all, and ``unclear`` all words, however quoted, of the parts that could not be read
    for certain, to tell whether they could concern a rule. Reading a ``short`` line again gives the same object.
    """

    simple: tuple[Simple, ...]
    nested: tuple[CommandLine, ...] = ()
    substituted: tuple[CommandLine, ...] = ()
    unread: frozenset[str] = frozenset()
    ends_in_background: bool = False
    short: bool = True
    counted: tuple[Words, ...] = field(init=False)
    every: tuple[Words, ...] = field(init=False)
    unclear: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        own = tuple(form for simple in self.simple for form in simple.forms)
        inner = self.nested + self.substituted
        counted = own + tuple(form for line in self.nested for form in line.counted)
        # The class is frozen; these three are computed once because every assertion asks for them.
        object.__setattr__(self, "counted", counted)
        object.__setattr__(self, "every", own + tuple(form for line in inner for form in line.every))
        object.__setattr__(self, "unclear", self.unread.union(*(line.unclear for line in inner)))


def read_line(text: str) -> CommandLine:
    """Read a command line. Never fails: what cannot be read is kept as ``unclear`` words."""
    return _remembered(text) if len(text) <= _MAX_SHORT_CHARS else _read(text, 0)


@lru_cache(maxsize=4096)
def _remembered(text: str) -> CommandLine:
    return _read(text, 0)


def read_argv(argv: Words) -> CommandLine:
    """An argument array as a command line of one command; a shell's ``-c`` text is read too."""
    return _remembered_argv(argv) if sum(map(len, argv)) <= _MAX_SHORT_CHARS // 2 else _argv_line(argv)


@lru_cache(maxsize=4096)
def _remembered_argv(argv: Words) -> CommandLine:
    return _argv_line(argv)


def _argv_line(argv: Words) -> CommandLine:
    reader = _Reader(" ".join(argv), 0)
    reader.commands.append(Simple(_forms(argv)))
    return reader.line()


def _read(text: str, depth: int) -> CommandLine:
    reader = _Reader(text, depth)
    if depth > _MAX_NESTING:
        reader.opaque = True
    else:
        reader.read()
    return reader.line()


class _Reader:
    """Reads one line: here-documents and substitutions out first, then tokens, then what shells are handed."""

    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.commands: list[Simple] = []
        self.documents: list[str] = []
        self.substituted: list[CommandLine] = []
        self.opaque = False
        self.background = False
        self._words: list[str] = []
        self._joined = ""
        self._compounds = 0
        self._groups: list[int] = []
        self._opened = 0

    def read(self) -> None:
        body = self._take_substitutions(self._take_documents(self.text))
        at, redirected = 0, False
        while at < len(body):
            match = _TOKEN.match(body, at)
            if match is None or len(self.commands) >= _MAX_COMMANDS:
                self.opaque = True
                break
            kind, token, at = match.lastgroup, match.group(), match.end()
            if kind == "operator":
                if token == "(" and self._words:
                    # "name()" defines a function: what the name runs from here on is not what it says.
                    self.opaque, self.commands, self._words = True, [], []
                    break
                self._end_command(token)
            elif kind == "redirect":
                redirected = True
            elif kind == "word":
                self.background = False
                if not redirected:
                    self._words.append(_unquote(token))
                redirected = False
        self._end_command("")

    def _end_command(self, token: str) -> None:
        # A line may go on after "&&", "||" or "|".
        goes_on = token == "\n" and not self._words and self._joined in ("&&", "||", "|", "|&")
        if self._words:
            simple = self._simple(self._words)
            if simple is not None:
                self.commands.append(simple)
                self._joined = ""
            self._words = []
        self.background = self.background or token == "&"
        if token in ("(", ")"):
            self._group(token)
        elif token and self.commands and not goes_on:
            self._joined = ";" if token in ("\n", ";;") else token

    def _group(self, token: str) -> None:
        if token == "(":
            self._opened += 1
            self._groups.append(self._opened)
        elif self._groups:
            self._groups.pop()

    def _simple(self, words: list[str]) -> Simple | None:
        condition = self._compounds > 0
        while words and words[0] in _KEYWORDS:
            condition = condition or words[0] in _CONDITIONS
            self._compounds += (words[0] in _OPENERS) - (words[0] in _CLOSERS)
            if words[0] in _OPENERS or words[0] == "{":
                self._group("(")
            elif words[0] in _CLOSERS or words[0] == "}":
                self._group(")")
            words = words[1:]
        return Simple(_forms(tuple(words)), self._joined, condition, tuple(self._groups)) if words else None

    def _take_documents(self, text: str) -> str:
        """The text without here-documents; their bodies are kept."""
        at = 0
        while "<<" in text:
            match = _HEREDOC.search(text, at)
            if match is None or "\n" not in text[match.end() :]:
                break
            start = text.index("\n", match.end()) + 1
            end = re.compile(rf"^\t*{match['word']}$", re.MULTILINE).search(text, start)
            if end is None or len(self.documents) >= _MAX_DOCUMENTS:
                self.opaque = True
                break
            body = text[start : end.start()]
            self.documents.append(body)
            self.opaque = self.opaque or (not match["quote"] and ("$(" in body or "`" in body))
            text = text[: match.start()] + text[match.end() : start] + text[end.end() :]
            at = match.start()
        return text

    def _take_substitutions(self, text: str) -> str:
        """The text with ``$(...)``, ``<(...)`` and backquotes replaced by a word; what they run is read apart."""
        if not any(mark in text for mark in ("$(", "`", "<(", ">(")):
            return text
        parts: list[str] = []
        at, in_double = 0, False
        while at < len(text):
            char = text[at]
            if char == "\\":
                parts.append(text[at : at + 2])
                at += 2
                continue
            if char == "'" and not in_double:
                end = text.find("'", at + 1)
                end = len(text) if end < 0 else end + 1
                parts.append(text[at:end])
                at = end
                continue
            opens = char == "`" or text.startswith("$(", at) or (not in_double and text.startswith(("<(", ">("), at))
            if opens and len(self.substituted) >= _MAX_SUBSTITUTIONS:
                self.opaque = True
                break
            if opens:
                end = _end_of_substitution(text, at)
                inner = text[at + 1 : end - 1] if char == "`" else text[at + 2 : end - 1]
                self.substituted.append(_read(inner, self.depth + 1))
                parts.append(_SUBSTITUTED)
                at = end
                continue
            in_double = in_double != (char == '"')
            parts.append(char)
            at += 1
        return "".join(parts)

    def line(self) -> CommandLine:
        nested: list[CommandLine] = []
        for command in self.commands:
            words = command.forms[-1]
            name = words[0].rpartition("/")[2]
            if name in _SHELLS:
                script = _script_of(words)
                from_input = script is None and all(word[:1] in ("-", "+") for word in words[1:])
                scripts = self.documents if from_input else [] if script is None else [script]
                nested += [_read(text, self.depth + 1) for text in scripts]
                # What comes through a pipe or a here-string is not on the line as a command.
                self.opaque = self.opaque or (from_input and not scripts)
            elif name in _OPAQUE or (name == "env" and len(words) > 1) or _SUBSTITUTED in name:
                self.opaque = True
            elif "$" in name and not _ASSIGNMENT.match(words[0]):
                self.opaque = True
        unread = frozenset(_loose_words(self.text)) if self.opaque else frozenset()
        short = len(self.text) <= _MAX_SHORT_CHARS
        return CommandLine(tuple(self.commands), tuple(nested), tuple(self.substituted), unread, self.background, short)


def _loose_words(text: str) -> Iterator[str]:
    """Every word, and of ``name=value`` also the value."""
    for word in _WORDS.findall(text):
        yield word
        if "=" in word:
            yield word.rpartition("=")[2]


def _end_of_substitution(text: str, at: int) -> int:
    """The place after the substitution that starts at ``at``; the end of the text when it is not closed."""
    if text[at] == "`":
        end = text.find("`", at + 1)
        return len(text) if end < 0 else end + 1
    depth, at = 0, at + 1
    while at < len(text):
        char = text[at]
        if char == "'":
            end = text.find("'", at + 1)
            at = len(text) if end < 0 else end
        elif char == "\\":
            at += 1
        depth += (char == "(") - (char == ")")
        at += 1
        if depth == 0:
            return at
    return len(text)


def _script_of(words: Words) -> str | None:
    """The text that ``sh -c`` (also ``-lc``, ``-ec``) runs, with the shell's ``-e`` and ``pipefail`` written out."""
    options: list[str] = []
    for index, word in enumerate(words[1:-1], 1):
        if word[:1] not in ("-", "+") and words[index - 1] not in ("-o", "+o") and not words[index - 1].endswith("o"):
            return None
        options.append(word)
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            letters = "".join(option[1:] for option in options if option[:1] == "-" and option[:2] != "--")
            settings = "".join(f"set -{letter}\n" for letter in "en" if letter in letters)
            settings += "".join(f"set -o {name}\n" for name in ("pipefail", "errexit", "noexec") if name in options)
            return settings + words[index + 1]
    return None


def _unquote(token: str) -> str:
    if not any(char in token for char in "\\'\""):
        return token
    parts: list[str] = []
    for match in _WORD_PART.finditer(token):
        kind = match.lastgroup or "plain"
        text = match[kind]
        parts.append(_IN_DOUBLE.sub(r"\1", text) if kind == "double" else "" if (kind, text) == ("escaped", "\n") else text)
    return "".join(parts)


# Programs that run the rest of their words: name -> options that take a value.
_WRAPPERS: dict[str, frozenset[str]] = {
    "env": frozenset(("-u", "-C", "-S")),
    "sudo": frozenset(("-u", "-g", "-C")),
    "nice": frozenset(("-n",)),
    "ionice": frozenset(("-c", "-n")),
    "timeout": frozenset(("-s", "-k")),
    "stdbuf": frozenset(("-i", "-o", "-e")),
    "time": frozenset(("-f", "-o")),
    "xvfb-run": frozenset(("-s",)),
    "nohup": frozenset(),
    "setsid": frozenset(),
    "exec": frozenset(),
    "command": frozenset(),
    "npx": frozenset(("-p",)),
}
_TELLING = {"command": frozenset("vV"), "sudo": frozenset("l")}  # options with which they only tell something
_RUNNERS = frozenset(
    (("uv", "run"), ("poetry", "run"), ("pipenv", "run"), ("pdm", "run"), ("hatch", "run"), ("bundle", "exec"), ("pnpm", "exec"), ("yarn", "exec"))
)


def _forms(words: Words) -> tuple[Words, ...]:
    bare = _bare(words)
    return (words,) if bare == words or not bare else (words, bare)


def _bare(words: Words) -> Words:
    """``words`` without leading assignments and wrappers."""
    at = 0
    while at < len(words):
        name = words[at].rpartition("/")[2]
        if _ASSIGNMENT.match(words[at]):
            at += 1
        elif words[at : at + 2] in _RUNNERS:
            at = _after_options(words, at + 2, frozenset())
        elif name in _WRAPPERS:
            if _tells_only(name, words[at + 1 : _after_options(words, at + 1, _WRAPPERS[name])]):
                break
            at = _after_options(words, at + 1, _WRAPPERS[name]) + (name == "timeout")
        else:
            break
    return words[at:]


def _tells_only(name: str, options: Words) -> bool:
    """Whether a wrapper with these options runs nothing: ``command -v pytest`` says where it is."""
    if "--help" in options or "--version" in options:
        return True
    letters = _TELLING.get(name, frozenset())
    return any(option[:1] == "-" and option[:2] != "--" and not letters.isdisjoint(option) for option in options)


def _after_options(words: Words, at: int, valued: frozenset[str]) -> int:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in valued else 1
    return at
