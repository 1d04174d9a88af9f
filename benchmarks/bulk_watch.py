"""What a process uses, seen from outside: its CPU by thread, its memory, over time. Linux only (`/proc`)."""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_left
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import attrs

_TICK = 1 / os.sysconf("SC_CLK_TCK")
_EVERY = 0.2


@attrs.frozen
class Sample:
    """A process at one moment; seconds and bytes."""

    at: float
    """Seconds since 1970."""
    user: float
    system: float
    threads: dict[str, float]
    """CPU of each thread, user and system: the one with the event loop, and all others."""
    waited: float
    """How long the thread with the event loop was ready and had no core: other work took them."""

    @property
    def cpu(self) -> float:
        """User and system together."""
        return self.user + self.system


@attrs.frozen
class Usage:
    """What was used between two moments, in seconds."""

    wall: float
    user: float
    system: float
    threads: dict[str, float]
    waited: float

    @property
    def share(self) -> float:
        """Of one core."""
        return (self.user + self.system) / self.wall if self.wall else 0.0


def peak_memory(pid: int) -> int:
    """The most memory that was ever resident (VmHWM), bytes."""
    return _status(pid, "VmHWM")


def memory(pid: int) -> int:
    """The memory that is resident now, bytes."""
    return _status(pid, "VmRSS")


def forget_peak() -> None:
    """Let this process's peak begin anew with what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise ProcessLookupError(f"process {pid} has ended")


def _times(path: Path) -> tuple[float, float]:
    fields = path.read_text().rpartition(")")[2].split()
    return int(fields[11]) * _TICK, int(fields[12]) * _TICK


def waited(pid: int) -> float:
    """Seconds that a process's first thread was ready to run and had no core to run on."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9


def sample(pid: int) -> Sample:
    """A process now. Raises OSError or IndexError when it has ended."""
    at = time.time()
    user, system = _times(Path(f"/proc/{pid}/stat"))
    threads: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        used, in_kernel = _times(task / "stat")
        label = "loop" if int(task.name) == pid else "other threads"
        threads[label] = threads.get(label, 0.0) + used + in_kernel
    return Sample(at, user, system, threads, waited(pid))


class Watch:
    """Samples a process five times a second until it is left, or the process ends."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._samples: list[Sample] = []
        self.began = time.time()
        """Seconds since 1970."""
        self.peak = 0
        """VmHWM, bytes."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(OSError, IndexError):
            while True:
                self._samples.append(sample(self._pid))
                self.peak = max(self.peak, peak_memory(self._pid))
                if self._over.wait(_EVERY):
                    return

    def between(self, start: float, end: float) -> Usage:
        """What was used from the sample before `start` to the one after `end` (seconds since 1970)."""
        times = [each.at for each in self._samples]
        last = len(times) - 1
        first = self._samples[max(0, bisect_left(times, start) - 1)]
        final = self._samples[min(last, bisect_left(times, end))]
        threads = {name: used - first.threads.get(name, 0.0) for name, used in final.threads.items()}
        return Usage(
            final.at - first.at,
            final.user - first.user,
            final.system - first.system,
            threads,
            final.waited - first.waited,
        )
