"""Reading an evidence directory that somebody else may have made.

Owns the way from a path to checked records. It never writes, follows no links out of
the directory, and believes no record that the manifest or the journal does not vouch for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from agent_eval.evidence import layout
from agent_eval.evidence.manifest import read_seal, verify
from agent_eval.evidence.manifest_lines import DIGEST
from agent_eval.evidence.plan_check import require_shape
from agent_eval.records import strict_json
from agent_eval.records.digests import open_file, read_file, sha256_bytes
from agent_eval.records.plan import planned_numbers
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem

_EVENTS = ("planned", "started", "finished", "interrupted", "sealing")


@dataclass(frozen=True, slots=True)
class RetainedTrial:
    """A finished trial as it was kept. ``record`` is ``trial.json``, ``sha256`` the digest of its bytes."""

    case_id: str
    number: int
    path: str
    record: dict
    sha256: str

    @property
    def name(self) -> str:
        """``case/NNN``, as ``show`` takes it."""
        return f"{self.case_id}/{self.number:03d}"

    def read(self, name: str) -> bytes | None:
        """Bytes of a file of the trial's folder, ``None`` when the record does not name it.

        Raises :class:`EvidenceFault` when it is gone or not what the record says.
        """
        digest = self.record["files"].get(name)
        if digest is None:
            return None
        data = _read_plain(os.path.join(self.path, name))
        if data is None or sha256_bytes(data) != digest:
            raise EvidenceFault.one(f"trials/{self.name}/{name}", "changed or missing")
        return data


class EvidenceReader:
    """An evidence directory that was checked when it was opened.

    ``sealed`` says whether it has a manifest; ``seal`` is then its digest. For an unsealed one ``finished`` are case, number
    and record's digest of every trial that its journal vouches for, ``unfinished`` those that it says were started and never
    finished. A part of a merged directory has a reader of its own: what was true of it before it was merged stays true.
    """

    def __init__(self, path: str, plan: dict, seal: str | None, prefix: str = "") -> None:
        self.path = path
        self.plan = plan
        self.seal = seal
        self.sealed = seal is not None
        self.unfinished: frozenset[tuple[str, int]] = frozenset()
        self.finished: dict[tuple[str, int], bytes] | None = None
        self._case_digests = {case["id"]: case.get("sha256") for case in reversed(plan["cases"])}
        self._last_case: tuple[str, bytes] | None = None
        self._prefix = prefix  # before the names of its files in messages
        self._parts: dict[int, EvidenceReader] = {}
        if not self.sealed:
            self._read_journal()

    @classmethod
    def open(cls, path: str, *, unsealed_ok: bool = False, check: bool = True) -> EvidenceReader:
        """Open a directory of this format or an earlier one.

        With ``check`` every file is compared with the manifest first. Raises :class:`InvalidInput` when it is
        not an evidence directory, is of a newer format, or is unsealed without ``unsealed_ok``;
        :class:`EvidenceFault`, naming each path, when it does not hold.
        """
        if not os.path.isdir(path):
            raise InvalidInput.one(path, "not an evidence directory", "name the directory that a run printed")
        seal = read_seal(path)
        if seal is None and not os.path.lexists(os.path.join(path, layout.MANIFEST)):
            if not unsealed_ok:
                _read_plan(path)
                raise InvalidInput.one(path, "unsealed", "add --unsealed to use its finished trials")
        elif check:
            _require_consistent(path)
        return cls(os.path.abspath(path), _read_plan(path), seal)

    @property
    def summary(self) -> dict | None:
        """The summary, ``None`` when the run did not get to write one."""
        data = self.read(layout.SUMMARY)
        return None if data is None else _record(layout.SUMMARY, data)

    def case_bytes(self, case_id: str) -> bytes:
        """A case, byte for byte as it was given. Raises :class:`EvidenceFault` when it is not there."""
        # Trials of one case come one after another.
        if self._last_case is None or self._last_case[0] != case_id:
            data = self.read(layout.case_file(case_id))
            if data is None or sha256_bytes(data) != self._case_digests.get(case_id):
                raise EvidenceFault.one(layout.case_file(case_id), "missing, or not the case that the plan names")
            self._last_case = (case_id, data)
        return self._last_case[1]

    def read(self, name: str) -> bytes | None:
        """Bytes of a plain file by relative path, ``None`` when it is not there."""
        if not layout.is_safe_path(name):
            raise InvalidInput.one(name, "not a path of an evidence directory")
        return _read_plain(os.path.join(self.path, name))

    def trials(self) -> Iterator[RetainedTrial]:
        """Every finished trial, in the order of the plan. Raises :class:`EvidenceFault` for a record that does not hold."""
        for case in self.plan["cases"]:
            for number in planned_numbers(self.plan, case["id"]):
                trial = self.trial(case["id"], number)
                if trial is not None:
                    yield trial

    def trial(self, case_id: str, number: int) -> RetainedTrial | None:
        """One finished trial, ``None`` when it has no record (or, unsealed, the journal does not vouch for it)."""
        expected = None
        if self.finished is not None:
            expected = self.finished.get((case_id, number))
            if expected is None:
                return None
        elif "counted" in self.plan:
            part = self._part_of(case_id, number)
            return None if part is None else part.trial(case_id, number)
        folder = os.path.join(self.path, layout.trial_folder(case_id, number))
        name = f"{self._prefix}{layout.trial_folder(case_id, number)}/{layout.TRIAL_RECORD}"
        data = _read_plain(os.path.join(folder, layout.TRIAL_RECORD))
        if data is None and expected is None:
            return None
        digest = "" if data is None else sha256_bytes(data)
        if data is None or (expected is not None and digest != expected.hex()):
            raise EvidenceFault.one(name, "changed or missing since the journal named it")
        record = _record(name, data)
        if record.get("case_id") != case_id or record.get("number") != number or not isinstance(record.get("files"), dict):
            raise EvidenceFault.one(name, "not the record of this trial")
        return RetainedTrial(case_id, number, folder, record, digest)

    def _read_journal(self) -> None:
        """What the journal of an unsealed directory vouches for. A plan or a record that it names otherwise is a fault."""
        begun: set[tuple[str, int]] = set()
        finished: dict[tuple[str, int], bytes] = {}
        for event in read_journal(self.path, self.plan):
            if event["event"] == "planned":
                data = _read_plain(os.path.join(self.path, layout.PLAN)) or b""
                if event.get("plan_sha256") != sha256_bytes(data):
                    raise EvidenceFault.one(f"{self._prefix}{layout.PLAN}", "changed since the journal named it")
                continue
            if event["event"] not in ("started", "finished"):
                continue
            trial = (event["case_id"], event["number"])
            if event["event"] == "started":
                begun.add(trial)
                continue
            digest = bytes.fromhex(event["sha256"])
            if finished.setdefault(trial, digest) != digest:
                raise EvidenceFault.one(f"{self._prefix}{layout.JOURNAL}", f"names two records of {trial[0]}/{trial[1]:03d}")
            begun.discard(trial)
        self.unfinished, self.finished = frozenset(begun - finished.keys()), finished

    def parts(self) -> Iterator[EvidenceReader]:
        """The parts of a merged directory, in its order; none of any other."""
        for index in range(1, len(self.plan.get("parts", ())) + 1):
            yield self._part(index)

    def _part(self, index: int) -> EvidenceReader:
        if index not in self._parts:
            folder = layout.part_folder(index)
            path = os.path.join(self.path, folder)
            self._parts[index] = EvidenceReader(path, _read_plan(path), read_seal(path), f"{folder}/")
        return self._parts[index]

    def _part_of(self, case_id: str, number: int) -> EvidenceReader | None:
        """The part of a merged directory whose trial counts, ``None`` when none has it."""
        index = self.plan["counted"][case_id][number - 1] if 1 <= number <= self.plan["trials"] else 0
        return self._part(index) if index else None


def read_journal(path: str, plan: dict) -> Iterator[dict]:
    """The journal's whole lines, each about a planned trial or about the run. A last line cut by a crash is passed over.

    Raises :class:`EvidenceFault`, naming the line, for anything that this project does not write, and for a journal that is
    not there although trials are.
    """
    place = os.path.join(path, layout.JOURNAL)
    planned = {case["id"]: frozenset(planned_numbers(plan, case["id"])) for case in plan["cases"]}
    try:
        stream = open_file(place)
    except (OSError, ValueError):
        if os.path.lexists(place) or _has_entries(os.path.join(path, layout.TRIALS)):
            raise EvidenceFault.one(layout.JOURNAL, "missing, or not a plain file") from None
        return
    with stream:
        for index, line in enumerate(stream):
            if not line.endswith(b"\n"):
                return
            where = f"{layout.JOURNAL}, line {index + 1}"
            event = _record(where, line[:-1])
            _check_event(event, where, planned)
            yield event


def _check_event(event: dict, where: str, planned: dict[str, frozenset[int]]) -> None:
    kind = event.get("event")
    if kind not in _EVENTS:
        raise EvidenceFault.one(where, "not a line that a run writes")
    if kind not in ("started", "finished"):
        return
    case_id, number = event.get("case_id"), event.get("number")
    if not isinstance(case_id, str) or type(number) is not int or number not in planned.get(case_id, ()):
        raise EvidenceFault.one(where, "about a trial that was not planned")
    digest = event.get("sha256")
    if kind == "finished" and not (isinstance(digest, str) and DIGEST.fullmatch(digest)):
        raise EvidenceFault.one(where, "without the digest of a record")


def _has_entries(folder: str) -> bool:
    try:
        return bool(os.listdir(folder))
    except OSError:
        return False


def _read_plan(path: str) -> dict:
    data = _read_plain(os.path.join(path, layout.PLAN))
    if data is None:
        raise InvalidInput.one(path, "not an evidence directory (no plan.json)", "name the directory that a run printed")
    try:
        plan = strict_json.parse_object(data, max_bytes=layout.MAX_RECORD_BYTES)
    except strict_json.JsonError as error:
        raise EvidenceFault.one(os.path.join(path, layout.PLAN), str(error)) from None
    version = layout.format_version(plan.get("format"))
    if version is None:
        raise InvalidInput.one(path, "not an evidence directory of this project", "name the directory that a run printed")
    if version > layout.FORMAT_VERSION:
        raise InvalidInput.one(path, f"written in format {plan['format']}", f"this version reads up to {layout.FORMAT}: use a newer one")
    require_shape(plan, path)
    return plan


def _require_consistent(path: str) -> None:
    report = verify(path)
    kinds = (("missing", report.missing), ("unexpected", report.unexpected), ("changed", report.changed), ("unsafe", report.unsafe))
    problems = [Problem(name, kind) for kind, names in kinds for name in names]
    if problems:
        raise EvidenceFault(problems)


def _record(name: str, data: bytes) -> dict:
    try:
        return strict_json.parse_object(data, max_bytes=layout.MAX_RECORD_BYTES)
    except strict_json.JsonError as error:
        raise EvidenceFault.one(name, str(error)) from None


def _read_plain(path: str) -> bytes | None:
    """Bytes of a regular file, ``None`` when there is none; a link or a special file counts as none."""
    try:
        return read_file(path)
    except (OSError, ValueError):
        return None
