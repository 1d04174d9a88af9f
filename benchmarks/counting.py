"""Instructions, counted by valgrind's callgrind from inside the program that is counted. Linux on x86_64.

A program talks to valgrind through a sequence of instructions that does nothing anywhere else: four
rotations that add up to two whole turns, then an exchange of a register with itself (valgrind's "client
requests"). So one process can count several things, and nothing of its start.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.worker import ROOT

_SEQUENCE = bytes.fromhex(
    "4889f8"  # mov rax, rdi: the request
    "31d2"  # xor edx, edx: the answer where there is no valgrind
    "48c1c703 48c1c70d 48c1c73d 48c1c733 4887db"  # rol rdi by 3, 13, 61, 51; xchg rbx, rbx
    "4889d0 c3"  # mov rax, rdx; ret
)
_RUNNING_ON_VALGRIND, _CALLGRIND = 0x1001, 0x4354_0000
_ZERO, _DUMP_AT, _START, _STOP = (_CALLGRIND + number for number in (1, 3, 4, 5))
_Request = ctypes.c_ulong * 6


class Counter:
    """Counts instructions of all threads, from the first `count` on."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(_SEQUENCE)
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._ask = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.POINTER(_Request))(place)
        self.present = bool(self._request(_RUNNING_ON_VALGRIND))
        """Whether this process runs under valgrind."""

    def count(self, name: str, times: int, work: Callable[[], object]) -> None:
        """Have what `work` takes written out, under a name that says how often it does it; for `counts`."""
        text = ctypes.create_string_buffer(f"{name} {times}".encode())
        self._request(_START)
        self._request(_ZERO)
        work()
        self._request(_DUMP_AT, ctypes.addressof(text))
        self._request(_STOP)

    def _request(self, code: int, argument: int = 0) -> int:
        return int(self._ask(ctypes.pointer(_Request(code, argument, 0, 0, 0, 0))))


COMMAND = ("valgrind", "--tool=callgrind", "--quiet", "--instr-atstart=no")
"""To be followed by `--callgrind-out-file=` and the program."""


def possible() -> bool:
    """Whether instructions can be counted here."""
    return shutil.which("valgrind") is not None and platform.machine() == "x86_64"


def counted(module: str, *arguments: str) -> dict[str, int]:
    """Run `python -m module arguments` under valgrind: instructions of each thing it counts, once."""
    with tempfile.TemporaryDirectory() as place:
        command = [*COMMAND, f"--callgrind-out-file={place}/counted", sys.executable, "-m", module]
        environ = {**os.environ, "PYTHONHASHSEED": "0"}
        subprocess.run([*command, *arguments], check=True, cwd=ROOT, env=environ)
        found = counts(Path(place), "counted")
    return {name: found[name, times] // times for name, times in sorted(found)}


def counts(folder: Path, stem: str) -> dict[tuple[str, int], int]:
    """What was counted, by name and number of times, from callgrind's files."""
    found = {}
    for file in folder.glob(f"{stem}.*"):
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        name = _after(lines, "desc: Trigger: Client Request: ")
        if name:
            path, _, times = name.partition(" ")
            found[path, int(times)] = int(_after(lines, "summary: "))
    return found


def _after(lines: list[str], words: str) -> str:
    return next((line.removeprefix(words) for line in lines if line.startswith(words)), "")
