"""Other people's clients, each pinned, in an environment of their own that ours never sees.

`nox -s bench` makes it from `peers.txt`; by hand:

    uv venv .nox/peers && uv pip install --python .nox/peers -r benchmarks/peers.txt
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.worker import ROOT

PINS = ROOT / "benchmarks" / "peers.txt"
NAMED = ("aiohttp", "httpx", "requests", "stripe", "openai")
"""Those whose versions are told."""
PYTHON = Path(os.environ.get("PAYMENTS_BENCH_PEERS", ROOT / ".nox" / "peers")) / "bin" / "python"
MISSING = "no environment of peers (see benchmarks/peers.py): figures against them are left out"


def present() -> bool:
    """Whether their environment was made; where it was not, their figures are left out."""
    return PYTHON.exists()


def pins() -> dict[str, str]:
    """The version of each, by name."""
    lines = PINS.read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))
