"""Which machine, and how busy it was: what a reader needs to judge figures. Nothing that names it."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

LIBRARIES = ("aiohttp", "msgspec", "uvloop")


def circumstances() -> str:
    """The day, Python, cores, libraries and load, as a sentence."""
    libraries = ", ".join(f"{name} {_version(name)}" for name in LIBRARIES)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{datetime.now(UTC).date()}: Python {platform.python_version()}, {platform.system()} "
        f"{platform.machine()}, {cores} cores ({_processor()}), {libraries}; load {os.getloadavg()[0]:.1f}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"
