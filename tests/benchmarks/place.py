"""The machine and the folder that a result was measured on: what the committed form must name."""

from __future__ import annotations

import os
import platform
import statistics
import time


def file_system(folder: str) -> str:
    """Type of the file system that holds ``folder``, from /proc/self/mountinfo."""
    path = os.path.realpath(folder)
    best, kind = "", "unknown"
    with open("/proc/self/mountinfo", encoding="utf-8") as stream:
        for line in stream:
            before, _, after = line.partition(" - ")
            point = before.split()[4]
            if (path + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best):
                best, kind = point, after.split()[0]
    return kind


def create_cost_us(folder: str, name: str, files: int = 300) -> float:
    """Median microseconds of creating and writing one small file in a new folder ``name``.

    What it creates stays: ext4 makes every new file in a group of blocks dearer for minutes after files were deleted there
    (find_inode_bit passes over recently deleted inodes), up to fifty times.
    """
    place = os.path.join(folder, name)
    os.mkdir(place)
    spent = []
    for index in range(files):
        began = time.perf_counter()
        handle = os.open(os.path.join(place, str(index)), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        os.write(handle, b"x" * 100)
        os.close(handle)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent) * 1e6


def processor() -> str:
    """The first model name in /proc/cpuinfo, else what ``platform`` knows."""
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, str]:
    """What the result was measured on, by name."""
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{processor()}, {os.cpu_count()} cores, {memory_gib:.0f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "Python": platform.python_version(),
        "load at start": f"{os.getloadavg()[0]:.2f}",
    }


def room_for(folder: str, *, size_bytes: int, files: int) -> str:
    """Why ``folder`` has no room for so much, or an empty text. A file system that counts no inodes reports none in all."""
    found = os.statvfs(folder)
    free_bytes = found.f_bavail * found.f_frsize
    if free_bytes < size_bytes:
        return f"{free_bytes / 2**30:.1f} GiB free in {folder}, {size_bytes / 2**30:.1f} GiB needed"
    if found.f_files and found.f_favail < files:
        return f"{found.f_favail} inodes free in {folder}, {files} needed"
    return ""
