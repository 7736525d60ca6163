"""Writing an evidence directory: plan first, trials as they end, the manifest last.

Owns the order of the writes. Nothing that was written is opened for writing again;
a directory that exists is never used. It does not decide what a record says.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Any

from agent_eval.evidence import layout
from agent_eval.evidence.files import Files
from agent_eval.evidence.seal_check import RecordDigests, Witness
from agent_eval.records import strict_json
from agent_eval.records.clock import now_at
from agent_eval.records.digests import sha256_bytes
from agent_eval.records.problems import EvidenceFault, InvalidInput, Problem


_CONTENTS_BYTES = 64 * 1024


class TrialFolder:
    """The folder of one trial: made new, each file written once.

    ``files`` is what ``trial.json`` will name: relative path and SHA-256. ``contents`` holds what is at hand of them, 64 KiB at most.
    """

    __slots__ = ("case_id", "contents", "files", "number", "path", "_files", "_folders", "_room_bytes")

    def __init__(self, path: str, case_id: str, number: int, files: Files) -> None:
        self.path = path
        self.case_id = case_id
        self.number = number
        self.files: dict[str, str] = {}
        self.contents: dict[str, bytes] = {}
        self._room_bytes = _CONTENTS_BYTES
        self._files = files
        self._folders: set[str] = set()

    def write(self, name: str, data: bytes) -> str:
        """Write one new file and return its digest. Raises ``OSError``; a second file of a name is ``FileExistsError``."""
        folder, _, _ = name.rpartition("/")
        if folder and folder not in self._folders:
            self._files.make_directory(f"{self.path}/{folder}")
            self._folders.add(folder)
        self._files.create(f"{self.path}/{name}", data)
        digest = sha256_bytes(data)
        self.adopt(name, digest, data)
        return digest

    def keep_content(self, data: bytes) -> str:
        """Keep captured content under its own digest, once however often it occurs; returns the digest."""
        digest = sha256_bytes(data)
        name = f"{layout.FILES}/{digest}"
        return digest if name in self.files else self.write(name, data)

    def adopt(self, name: str, sha256: str, content: bytes | None = None) -> None:
        """Count a file that the supervisor wrote into the folder, with the digest taken while writing and its content where that is at hand."""
        self.files[name] = sha256
        if content is not None and len(content) <= self._room_bytes:
            self._room_bytes -= len(content)
            self.contents[name] = content


class EvidenceWriter:
    """One new evidence directory, from its creation to its seal.

    The digest of each finished trial's record is held in memory (32 bytes a trial), so that
    a record changed behind our back is noticed when the directory is sealed.
    """

    def __init__(self, path: str, files: Files) -> None:
        self.path = path
        self.files = files
        self._finished = RecordDigests()
        self._case_folders: set[str] = set()
        self._open_folders: set[str] = set()
        self._fixed: dict[str, str] = {}
        self._journal = -1
        self._journal_bytes = 0
        self._journal_digest = hashlib.sha256()

    @classmethod
    def create(cls, path: str, files: Files | None = None) -> EvidenceWriter:
        """Make the directory (mode 0700), which must not exist; its parent must.

        Raises :class:`InvalidInput` when it exists or cannot be made.
        """
        files = files or Files()
        try:
            files.make_directory(path)
        except FileExistsError:
            raise InvalidInput.one(path, "exists already", "name a new directory: evidence is never overwritten") from None
        except OSError as error:
            raise InvalidInput.one(path, f"cannot be made ({error.strerror})", "name a directory in a folder you may write") from None
        return cls(os.path.abspath(path), files)

    def write_plan(self, plan: dict[str, object], cases: Iterable[tuple[str, bytes]] = ()) -> None:
        """Write and sync ``plan.json`` before anything runs, then the cases as given and the journal's first line.

        Raises :class:`EvidenceFault` when it cannot be written.
        """
        try:
            self._write_plan_file(strict_json.pretty(plan))
            self.files.sync_file(self.path)
            self.files.sync_file(os.path.dirname(self.path))
            self.files.make_directory(os.path.join(self.path, layout.CASES))
            self.files.make_spread_directory(os.path.join(self.path, layout.TRIALS))
            for case_id, data in cases:
                self.write(layout.case_file(case_id), data)
            self._journal = self.files.open_append(os.path.join(self.path, layout.JOURNAL))
            self.journal("planned", planned=plan.get("planned"), plan_sha256=self._fixed[layout.PLAN])
        except OSError as error:
            raise EvidenceFault.one(self.path, f"the plan could not be written ({error.strerror})", "nothing was run") from None

    def _write_plan_file(self, data: bytes) -> None:
        # Under its final name only when whole and durable: half a plan would be no plan.
        draft = os.path.join(self.path, layout.PLAN_DRAFT)
        self.files.create(draft, data)
        self.files.sync_file(draft)
        self.files.rename(draft, os.path.join(self.path, layout.PLAN))
        self._fixed[layout.PLAN] = sha256_bytes(data)

    def write(self, name: str, data: bytes) -> str:
        """Write a file of the run itself, once, and return its digest. Raises ``OSError``."""
        self.files.create(os.path.join(self.path, name), data)
        digest = self._fixed[name] = sha256_bytes(data)
        return digest

    def journal(self, event: str, **facts: object) -> None:
        """Append one line. Raises ``OSError``; a line that could not be written whole is taken back."""
        line = strict_json.canonical({"event": event, "at": now_at(), **facts}) + b"\n"
        try:
            self.files.append(self._journal, line)
        except OSError:
            os.ftruncate(self._journal, self._journal_bytes)
            raise
        self._journal_bytes += len(line)
        self._journal_digest.update(line)

    def trial(self, case_id: str, number: int) -> TrialFolder:
        """Make the folder of a trial. Raises ``OSError``; an existing folder is ``FileExistsError``."""
        if case_id not in self._case_folders:
            self.files.make_directory(f"{self.path}/{layout.TRIALS}/{case_id}")
            self._case_folders.add(case_id)
        path = f"{self.path}/{layout.trial_folder(case_id, number)}"
        self.files.make_directory(path)
        self._open_folders.add(path)
        return TrialFolder(path, case_id, number, self.files)

    def forget(self, folder: TrialFolder) -> None:
        """Remove the folder of a trial that was not started and wrote nothing."""
        _remove_if_empty(folder.path)
        self._open_folders.discard(folder.path)

    def finish(self, folder: TrialFolder, record: dict[str, Any], *, sync: bool = False) -> None:
        """Write ``trial.json`` once and say so in the journal; with ``sync`` both are durable when this returns.

        Raises ``OSError``; the trial then has no record.
        """
        data = strict_json.canonical({**record, "files": folder.files}) + b"\n"
        path = f"{folder.path}/{layout.TRIAL_RECORD}"
        self.files.create(path, data)
        digest = sha256_bytes(data)
        judgment = record["judgment"]
        try:
            self.journal(
                "finished",
                case_id=folder.case_id,
                number=folder.number,
                sha256=digest,
                verdict=judgment["verdict"],
                cause=judgment["cause"],
            )
            if sync:
                self.files.sync_all(self.path)
        except OSError:
            os.unlink(path)
            raise
        self._finished.add(folder.case_id, folder.number, bytes.fromhex(digest))
        self._open_folders.discard(folder.path)

    def seal(self, summary: dict[str, object]) -> str:
        """Write the summary, then the manifest under its final name, and return its digest.

        Everything is made durable before the manifest appears, and the manifest before this returns.
        Raises :class:`EvidenceFault` when something changed since it was written or cannot be written;
        the directory then stays unsealed.
        """
        try:
            self.write(layout.SUMMARY, strict_json.pretty(summary))
            self._remove_empty_folders()
            self.journal("sealing")
            self.close()
            self._fixed[layout.JOURNAL] = self._journal_digest.hexdigest()
            self.files.sync_all(self.path)
            draft = os.path.join(self.path, layout.MANIFEST_DRAFT)
            seal = self._write_manifest(draft)
            self.files.sync_file(draft)
            self.files.rename(draft, os.path.join(self.path, layout.MANIFEST))
            self.files.sync_file(self.path)
        except (OSError, ValueError) as error:
            self._withdraw()
            reason = error.strerror if isinstance(error, OSError) else error
            raise EvidenceFault.one(self.path, f"could not be sealed ({reason})", "the directory is left unsealed") from None
        return seal

    def _write_manifest(self, path: str) -> str:
        """Write the manifest of what is on disk, each file read once, and return its digest.

        Raises ``OSError``, and :class:`EvidenceFault` for what is not as it was written.
        """
        witness = Witness(self._fixed, self._finished)
        seal = hashlib.sha256()
        descriptor = self.files.open_append(path)
        try:
            for piece in witness.manifest(self.path):
                self.files.append(descriptor, piece)
                seal.update(piece)
        finally:
            os.close(descriptor)
        if witness.changed:
            self._withdraw()
            raise EvidenceFault(
                [Problem(name, "changed-before-seal", "the directory is left unsealed") for name in witness.changed[:20]]
            )
        return seal.hexdigest()

    def _remove_empty_folders(self) -> None:
        # A manifest names files only: a folder that holds none would be unexpected in it.
        trials = os.path.join(self.path, layout.TRIALS)
        for path in self._open_folders:
            _remove_if_empty(path)
        for case_id in self._case_folders:
            _remove_if_empty(os.path.join(trials, case_id))
        for path in (trials, os.path.join(self.path, layout.CASES)):
            _remove_if_empty(path)

    def _withdraw(self) -> None:
        # A manifest that may not survive a power loss is no seal, and the summary's exit code
        # would contradict the one that the run now ends with.
        for name in (layout.MANIFEST, layout.MANIFEST_DRAFT, layout.SUMMARY):
            try:
                os.unlink(os.path.join(self.path, name))
            except OSError:
                continue

    def close(self) -> None:
        """Close the journal. The directory stays unsealed unless :meth:`seal` was called."""
        if self._journal >= 0:
            os.close(self._journal)
            self._journal = -1


def _remove_if_empty(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        return
