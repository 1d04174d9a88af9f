"""Other people's clients, each pinned, in an environment of their own that ours never sees.

`nox -s bench` makes it from `peers.txt`; by hand:

    uv venv .nox/peers && uv pip install --python .nox/peers -r benchmarks/peers.txt
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from benchmarks.worker import CLIENT_CORE, ROOT, Worker, started

PINS = ROOT / "benchmarks" / "peers.txt"
ENVIRONMENT = Path(os.environ.get("PAYMENTS_BENCH_PEERS", ROOT / ".nox" / "peers"))
MISSING = "no environment of peers (see benchmarks/peers.py): figures against them are left out"


class Peers:
    """Starts workers in the peers' environment. Where there is none (`present`), leave their figures out."""

    def __init__(self, environment: Path = ENVIRONMENT) -> None:
        self.python: Path = environment / "bin" / "python"
        self.present: bool = self.python.exists()

    def start(
        self,
        module: str,
        *arguments: str,
        core: int | None = CLIENT_CORE,
        environ: Mapping[str, str] | None = None,
    ) -> AbstractContextManager[Worker]:
        """A worker: `with peers.start("benchmarks.contenders.stripe_calls", url) as worker: worker.ask()`."""
        if not self.present:
            raise FileNotFoundError(MISSING)
        return started(module, *arguments, python=self.python, core=core, environ=environ)

    def run(
        self, module: str, *arguments: str, core: int | None = CLIENT_CORE, **question: Any
    ) -> dict[str, Any]:
        """One answer of a worker that is started for it."""
        with self.start(module, *arguments, core=core) as worker:
            return worker.ask(**question)


def pin(name: str) -> str:
    """The version of a peer, from `peers.txt`."""
    for line in PINS.read_text(encoding="utf-8").splitlines():
        if line.partition("==")[0] == name:
            return line.partition("==")[2].strip()
    raise KeyError(name)
