"""The files that no relation speaks of: figure, R object, session and script. Are they whole, and of their kind?

A figure must be a complete PNG (every chunk's CRC), the RDS a complete compressed stream that starts as R's
serialization does, the session must name the R and DESeq2 versions of the manifest. The object is *not* read: an
RDS can run code, and this checker claims nothing about what is in it.
"""

from __future__ import annotations

import bz2
import lzma
import struct
import zlib

from .findings import Comparison, Ledger, Place
from .integrity import MAX_KEPT_BYTES, Folder

_PNG = b"\x89PNG\r\n\x1a\n"
_RDS_STARTS = (b"X\n", b"A\n", b"B\n")      # XDR, ASCII and native binary serialization
_MAX_RDS_BYTES = 4 * 1024 * 1024 * 1024
_CHUNK = 1 << 20


def check_attachments(folder: Folder, ledger: Ledger) -> None:
    check = ledger.add(Comparison("attachments", "figure, R object, session and script are whole and of their kind"))
    for role, fault_of in (("figure", png_fault), ("dds", rds_fault),
                           ("session_info", lambda data: session_fault(data, folder.facts)), ("script", text_fault)):
        data = folder.data.get(role)
        if data is not None:
            fault = fault_of(data)
            check.require(fault is None, Place(folder.path(role), what=fault or ""))
        else:
            check.notes.append(f"{folder.path(role)} was not looked into: it could not be read, or is larger than {MAX_KEPT_BYTES} bytes")


def png_fault(data: bytes) -> str | None:
    """Why these bytes are not one whole PNG, or None."""
    if not data.startswith(_PNG):
        return "is not a PNG"
    at, kinds = len(_PNG), []
    while at + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, at)
        end = at + 12 + length
        if end > len(data):
            return "is a truncated PNG"
        if zlib.crc32(data[at + 4:end - 4]) != struct.unpack_from(">I", data, end - 4)[0]:
            return f"is a damaged PNG: the chunk at byte {at} does not have its CRC"
        kinds.append(data[at + 4:at + 8])
        at = end
        if kinds[-1] == b"IEND":
            break
    if not kinds or kinds[0] != b"IHDR" or kinds[-1] != b"IEND" or b"IDAT" not in kinds:
        return "is a truncated PNG"
    return None if at == len(data) else f"has {len(data) - at} bytes after the PNG"


def rds_fault(data: bytes) -> str | None:
    """Why these bytes are not one whole serialized R object, as far as can be told without reading it."""
    if data.startswith(b"\xfd7zXZ\x00"):
        opened = lzma.LZMADecompressor(memlimit=1 << 28)
    elif data.startswith(b"BZh"):
        opened = bz2.BZ2Decompressor()
    elif data.startswith(b"\x1f\x8b"):
        opened = None
    else:
        return None if data.startswith(_RDS_STARTS) else "is not an RDS"
    try:
        start, whole = _drain_gzip(data) if opened is None else _drain(opened, data)
    except (lzma.LZMAError, OSError, EOFError, zlib.error) as error:
        return f"is a damaged RDS: {error}"
    if not start.startswith(_RDS_STARTS):
        return "is compressed, but what is in it is not an R object"
    return None if whole else "is a truncated or overlong RDS"


def _drain(opened: lzma.LZMADecompressor | bz2.BZ2Decompressor, data: bytes) -> tuple[bytes, bool]:
    """The first bytes, and whether the stream ends where the file does; holds one piece at a time."""
    start, total = opened.decompress(data, 16), 0
    while not opened.eof and total < _MAX_RDS_BYTES and not opened.needs_input:
        total += len(opened.decompress(b"", _CHUNK))
    return start, opened.eof and not opened.unused_data


def _drain_gzip(data: bytes) -> tuple[bytes, bool]:
    opened, total = zlib.decompressobj(31), 0
    start = opened.decompress(data, 16)
    while opened.unconsumed_tail and not opened.eof and total < _MAX_RDS_BYTES:
        total += len(opened.decompress(opened.unconsumed_tail, _CHUNK))
    return start, opened.eof and not opened.unused_data


def session_fault(data: bytes, facts: dict[str, object]) -> str | None:
    """The session must say the versions that the manifest says."""
    fault = text_fault(data)
    if fault is not None:
        return fault
    words = data.decode("utf-8").split()
    for name, version in facts["versions"].items():
        said = [word for word in words if word.startswith(f"{name}_")]
        if name == "R":
            fault = f"R version {version} " not in " ".join(words) + " "
        else:       # Bioconductor is no package; DESeq2 must be there, the others where they are
            fault = f"{name}_{version}" not in said and (bool(said) or name == "DESeq2")
        if fault:
            return f"does not say {name} {version}, which is what the manifest says"
    return None


def text_fault(data: bytes) -> str | None:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return f"is not UTF-8 at byte {error.start}"
    if "\x00" in text:
        return "has a NUL byte"
    return None if text.strip() else "is empty"
