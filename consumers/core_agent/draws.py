"""Drawing names and numbers: the small data language of scenarios.

Owns the stream of random numbers and the forms of a draw. Every name of a group is
drawn from its own sub-stream, so that the order of keys in a file changes nothing and
a draw can be repeated from the seed alone, on any version of Python. It does not
know what the values are used for.

A draw is a JSON object with one of these keys (any text inside may be a template):

``choose`` a list: one of it · ``int`` ``[low, high]``: both included · ``hex`` n: n random bytes as hex ·
``word`` 1: one word · ``words`` n: n different words · ``sample`` a list with ``count``: so many different of it ·
``rows`` ``{count | over + as, columns, distinct}``: a list of objects, each column a draw · ``text`` a template ·
``where`` rows with ``column`` and ``equals`` (a value or a list of them): the matching rows · ``pluck`` rows with ``of``: one column ·
``sum`` rows with ``of`` · ``largest`` rows with ``of``: the row of the largest value · ``group`` rows with ``by``
and ``adding``: ``{key, count, sum}`` by key · ``at`` a list with ``index`` · ``size`` a list · ``sorted`` a list ·
``join`` a list with ``with`` · ``without`` a list with ``item``: the others · ``concat`` a list of lists ·
``total`` a list of numbers: their sum · ``around`` a number with ``by``: all integers at most so far from it · ``range`` ``[low, high]``: all integers from low to high.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from .templates import TemplateError, render_value

MAX_ROWS = 5000
MAX_HEX_BYTES = 1024

_WORDS = ["amber", "anchor", "apple", "arbor", "ashen", "aspen", "atlas", "autumn", "badger", "balsam", "bamboo", "barley", "basil", "beacon", "birch", "bison", "bramble", "breeze", "bronze", "brook", "canal", "candle", "canyon", "cedar", "cherry", "cinder", "citrus", "clover", "cobalt", "comet", "copper", "coral", "cotton", "crane", "crater", "cricket", "crystal", "cypress", "dahlia", "delta", "desert", "drift", "dune", "eagle", "ebony", "ember", "falcon", "fennel", "fern", "fjord", "flint", "forest", "fossil", "garnet", "ginger", "glacier", "granite", "grove", "harbor", "hazel", "heron", "hollow", "honey", "indigo", "iris", "island", "ivory", "jasmine", "jasper", "juniper", "kelp", "kestrel", "lagoon", "lantern", "laurel", "lava", "lemon", "lichen", "lily", "linen", "lotus", "lunar", "lynx", "magnet", "mallow", "maple", "marble", "marsh", "meadow", "mesa", "meteor", "mint", "mirror", "moss", "nectar", "nettle", "nickel", "north", "oasis", "ocean", "olive", "onyx", "opal", "orchid", "osprey", "otter", "oxide", "paprika", "pebble", "pepper", "petal", "pine", "plume", "polar", "pollen", "poplar", "prairie", "prism", "quail", "quarry", "quartz", "raven", "reef", "ridge", "river", "robin", "rowan", "ruby", "saffron", "sage", "salmon", "sand", "sapling", "scarlet", "sequoia", "shale", "silver", "sorrel", "sparrow", "spruce", "steppe", "stone", "summit", "swallow", "tansy", "teal", "thistle", "thunder", "timber", "topaz", "tulip", "tundra", "umber", "valley", "velvet", "violet", "walnut", "willow", "zephyr"]


class DrawError(ValueError):
    """A draw that cannot be made; the text says which and why."""


class Stream:
    """Uniform numbers from a seed: SHA-256 in counter mode, the same on every platform and version."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._counter = 0
        self._bytes = b""

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        while len(self._bytes) < count:
            block = self._counter.to_bytes(8, "big")
            self._bytes += hashlib.sha256(self._seed + block).digest()
            self._counter += 1
        taken, self._bytes = self._bytes[:count], self._bytes[count:]
        return taken

    def below(self, bound: int) -> int:
        """A uniform integer in ``0 .. bound - 1``; ``bound`` is 1 to 2**48, else :class:`DrawError`."""
        if not 1 <= bound <= 1 << 48:
            raise DrawError(f"a choice of {bound}")
        # Rejection keeps it uniform: a plain remainder favours small numbers.
        limit = (1 << 56) // bound * bound
        while (value := int.from_bytes(self.take(7), "big")) >= limit:
            pass
        return value % bound

    def sample(self, items: list, count: int) -> list:
        """``count`` different items, in random order."""
        pool = list(items)
        if count > len(pool):
            raise DrawError(f"{count} of a list of {len(pool)}")
        return [pool.pop(self.below(len(pool))) for _ in range(count)]


def derive(seed: bytes, *labels: str) -> bytes:
    """A sub-seed: a different label gives an unrelated stream."""
    return hashlib.sha256(b"\x00".join([seed, *(label.encode() for label in labels)])).digest()


def draw_group(group: Mapping[str, object], root: str, seed: bytes, known: Mapping[str, object]) -> dict[str, object]:
    """Every value of ``group``. Templates see ``known`` and, under ``root``, the group itself.

    Raises :class:`DrawError` naming the draw: unknown form, wrong values, a circle of references.
    """
    drawing = _Group(group, root, seed, known)
    return {name: drawing[name] for name in group}


class _Group(Mapping):
    """The values of one group, drawn when they are first asked for."""

    def __init__(self, group: Mapping[str, object], root: str, seed: bytes, known: Mapping[str, object]) -> None:
        self._group = group
        self._seed = seed
        self._values: dict[str, object] = {}
        self._open: set[str] = set()
        self._known = {**known, root: self}

    def __iter__(self):
        return iter(self._group)

    def __len__(self) -> int:
        return len(self._group)

    def __getitem__(self, name: str) -> object:
        if name in self._values:
            return self._values[name]
        if name in self._open:
            raise DrawError(f"{name}: refers to itself")
        if name not in self._group:
            raise KeyError(name)
        self._open.add(name)
        try:
            self._values[name] = draw(self._group[name], Stream(derive(self._seed, name)), self._known)
        except DrawError as error:
            raise DrawError(f"{name}: {error}") from None
        finally:
            self._open.discard(name)
        return self._values[name]


def draw(spec: object, stream: Stream, known: Mapping[str, object]) -> object:
    """One value. A plain text is a template, any other plain value is itself. Raises :class:`DrawError`."""
    if not isinstance(spec, Mapping):
        return _rendered(spec, known)
    forms = [key for key in spec if key in _FORMS]
    if len(forms) != 1:
        raise DrawError(f"a draw has exactly one of {', '.join(sorted(_FORMS))}")
    form, fields = _FORMS[forms[0]]
    if surplus := set(spec) - {forms[0], *fields}:
        raise DrawError(f"{forms[0]} has no field {sorted(surplus)[0]!r}")
    if forms[0] == "rows":
        return _rows(spec["rows"], stream, known)
    values = {key: _rendered(value, known) for key, value in spec.items()}
    try:
        return form(stream, values)
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise DrawError(f"{forms[0]}: {error}") from None


def _rendered(value: object, known: Mapping[str, object]) -> object:
    try:
        return render_value(value, known)
    except TemplateError as error:
        raise DrawError(str(error)) from None


def _rows(spec: object, stream: Stream, known: Mapping[str, object]) -> list[dict[str, object]]:
    if not isinstance(spec, Mapping) or not isinstance(spec.get("columns"), Mapping):
        raise DrawError("rows needs 'columns'")
    if any(isinstance(column, Mapping) and "rows" in column for column in spec["columns"].values()):
        raise DrawError("rows within rows")
    if unknown := set(spec) - {"count", "over", "as", "columns", "distinct"}:
        raise DrawError(f"rows has no field {sorted(unknown)[0]!r}")
    if "over" in spec:
        starts = [{str(spec.get("as", "item")): item} for item in _rendered(spec["over"], known)]
    else:
        count = draw(spec.get("count", 1), stream, known)
        if type(count) is not int or not 0 <= count <= MAX_ROWS:
            raise DrawError(f"rows: count is 0 to {MAX_ROWS}")
        starts = [{} for _ in range(count)]
    seed = stream.take(32)
    distinct = {name: set() for name in spec.get("distinct", [])}
    rows = []
    for index, start in enumerate(starts):
        for attempt in range(1000):
            columns = {**start, **spec["columns"]}
            row = draw_group(columns, "row", derive(seed, str(index), str(attempt)), known)
            if all(row[name] not in seen for name, seen in distinct.items()):
                break
        else:
            raise DrawError(f"rows: no more different values for {', '.join(distinct)}")
        for name, seen in distinct.items():
            seen.add(row[name])
        rows.append(row)
    return rows


def _matching(stream: Stream, given: Mapping) -> list[dict[str, object]]:
    wanted = given["equals"] if isinstance(given["equals"], list) else [given["equals"]]
    return [row for row in given["where"] if row[given["column"]] in wanted]


def _whole_number(stream: Stream, given: Mapping) -> int:
    low, high = given["int"]
    return low + stream.below(high - low + 1)


def _random_hex(stream: Stream, given: Mapping) -> str:
    if not 1 <= given["hex"] <= MAX_HEX_BYTES:
        raise DrawError(f"1 to {MAX_HEX_BYTES} bytes")
    return stream.take(given["hex"]).hex()


def _groups(stream: Stream, given: Mapping) -> list[dict[str, object]]:
    totals: dict[object, list] = {}
    for row in given["group"]:
        totals.setdefault(row[given["by"]], []).append(row[given["adding"]])
    return [{"key": key, "count": len(part), "sum": sum(part)} for key, part in sorted(totals.items())]


def _integers(low: int, high: int) -> list[int]:
    if high - low >= MAX_ROWS:
        raise DrawError(f"a range has at most {MAX_ROWS} numbers")
    return list(range(low, high + 1))


# The form's own key, what makes the value, and the other fields that it takes.
_FORMS: dict[str, tuple[Callable[[Stream, Mapping], object], tuple[str, ...]]] = {
    "choose": (lambda stream, given: given["choose"][stream.below(len(given["choose"]))], ()),
    "int": (_whole_number, ()),
    "hex": (_random_hex, ()),
    "word": (lambda stream, given: _WORDS[stream.below(len(_WORDS))], ()),
    "words": (lambda stream, given: stream.sample(_WORDS, given["words"]), ()),
    "sample": (lambda stream, given: stream.sample(given["sample"], given["count"]), ("count",)),
    "rows": (lambda stream, given: None, ()),  # drawn by _rows, which must not see its columns rendered
    "text": (lambda stream, given: given["text"], ()),
    "where": (_matching, ("column", "equals")),
    "pluck": (lambda stream, given: [row[given["of"]] for row in given["pluck"]], ("of",)),
    "sum": (lambda stream, given: sum(row[given["of"]] for row in given["sum"]), ("of",)),
    "largest": (lambda stream, given: max(given["largest"], key=lambda row: row[given["of"]]), ("of",)),
    "group": (_groups, ("by", "adding")),
    "at": (lambda stream, given: given["at"][given["index"]], ("index",)),
    "size": (lambda stream, given: len(given["size"]), ()),
    "sorted": (lambda stream, given: sorted(given["sorted"]), ()),
    "join": (lambda stream, given: given["with"].join(str(item) for item in given["join"]), ("with",)),
    "without": (lambda stream, given: [item for item in given["without"] if item != given["item"]], ("item",)),
    "concat": (lambda stream, given: [item for part in given["concat"] for item in part], ()),
    "total": (lambda stream, given: sum(given["total"]), ()),
    "around": (lambda stream, given: _integers(given["around"] - given["by"], given["around"] + given["by"]), ("by",)),
    "range": (lambda stream, given: _integers(*given["range"]), ()),
}
