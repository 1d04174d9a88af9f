"""Which machine, and how busy it was: what a reader needs to judge figures. Nothing that names it."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = ("aiohttp", "msgspec", "uvloop")


def machine() -> dict[str, Any]:
    """The day, Python, cores and libraries."""
    return {
        "day": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "libraries": {name: _version(name) for name in LIBRARIES},
    }


def told(about: dict[str, Any]) -> str:
    """The same as a sentence."""
    libraries = ", ".join(f"{name} {found}" for name, found in about["libraries"].items())
    return (
        f"{about['day']}: Python {about['python']}, {about['system']}, {about['cores']} cores "
        f"({about['processor']}), {libraries}."
    )


def load() -> float:
    """How many processes wanted a core, on average over the last minute."""
    return os.getloadavg()[0]


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
