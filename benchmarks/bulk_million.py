"""What does a row cost, and does memory stay flat? `python -m benchmarks.bulk_million [ROWS ...]`

A file is imported, paid without rate limits at a stub, certified against the stub's list and exported, each
phase in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks import bulk_rows
from benchmarks.bulk_pay import LOOPS, PHASES
from benchmarks.bulk_service import Service, serving, started, unwind_on_sigterm

ROWS = (10_000, 100_000, 1_000_000)
_BYTES_A_ROW = 3_000
"""Of disk, more or less: the file, the ledger and its log, the stub's bodies, an export."""
_GROWTH = 16
"""MiB that a phase may take beyond what it takes at the smallest size: memory is flat."""
MIB = 1 << 20


def measure(rows: int, wished: argparse.Namespace) -> dict[str, Any]:
    """One size; everything in a temporary folder. Raises SystemExit when the disk is too small for it."""
    with tempfile.TemporaryDirectory(prefix="bulk-million-", dir=wished.folder) as folder:
        if shutil.disk_usage(folder).free < 2 * rows * _BYTES_A_ROW:
            raise SystemExit(
                f"{rows:,} rows take {rows * _BYTES_A_ROW / 1e9:.1f} GB of disk: name a --folder"
            )
        file = Path(folder, "payouts.csv")
        bulk_rows.write(file, rows)
        with serving("bulk_stub", str(Path(folder, "bodies"))) as stub:
            phases = _paid(rows, file, stub, wished)
            return {
                "rows": rows,
                "phases": phases,
                "ledger_bytes": _size(Path(folder), "payouts.ledger*"),
                "exact": "run" not in phases or _exact(rows, phases, stub.account()),
            }


def _paid(rows: int, file: Path, stub: Service, wished: argparse.Namespace) -> dict[str, Any]:
    """The phases in turn, each in a process of its own, so that none has another's memory."""
    phases: dict[str, Any] = {}
    for name in wished.phases:
        phases[name] = _phase(name, file, stub, wished)
        if not wished.json:
            print(row(rows, phases[name]), flush=True)
    return phases


def _phase(name: str, file: Path, stub: Service, wished: argparse.Namespace) -> dict[str, Any]:
    """What one phase tells; `over_idle` is the memory it took over an idle client's, bytes."""
    options = ["--lifted", "--concurrency", str(wished.concurrency), "--loop", wished.loop]
    command = [sys.executable, "-m", "benchmarks.bulk_pay", str(file), str(file.with_suffix(".ledger"))]
    with started([*command, *options, "--phases", name], stub.variables) as process:
        out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the paying process ended with {process.returncode} in {name}")
    told = {line["phase"]: line for line in map(json.loads, out.splitlines())}
    return {**told[name], "over_idle": told[name]["peak"] - told["idle"]["peak"]}


def _size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern))


def _exact(rows: int, phases: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    """Whether each row was created exactly once, and stub, input and certificate agree to the cent."""
    expected = bulk_rows.totals(rows)
    booked = {currency: Decimal(amount) for currency, amount in account["sums"].items()}
    once = account["payouts"] == rows and not account["duplicates"] and phases["run"]["exit_code"] == 0
    if "certify" not in phases:
        return bool(once and booked == expected)
    certificate = phases["certify"]["certificate"]
    created = {currency: Decimal(sums["created"]) for currency, sums in certificate["sums"].items()}
    return bool(once and certificate["clean"] and booked == created == expected)


def row(rows: int, phase: Mapping[str, Any]) -> str:
    """One phase as a row of a Markdown table."""
    cpu, wall = phase["user"] + phase["system"], phase["wall"]
    return (
        f"| {rows:,} | {phase['phase']} | {wall:.1f} s | {rows / wall:,.0f} | {cpu / rows * 1e6:.0f} µs "
        f"| {phase['over_idle'] / MIB:.0f} MiB | {phase['waited'] / wall:.0%} | {phase['load']:.1f} |"
    )


def missed(f: Mapping[str, Any], smallest: Mapping[str, Any]) -> list[str]:
    """The targets that one size misses."""
    wrong = [] if f["exact"] else ["each row paid exactly once, exact to the cent"]
    for name, phase in f["phases"].items():
        grown = (phase["over_idle"] - smallest["phases"][name]["over_idle"]) / MIB
        wrong += [f"{name} takes {grown:.0f} MiB more than for {smallest['rows']:,}"] * (grown > _GROWTH)
    return [f"{f['rows']:,} rows: {each}" for each in wrong]


HEADER = (
    "| rows | phase | wall | rows a second | CPU a row | peak over idle | no core free | load |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |"
)


def main() -> None:
    """Every size, smallest first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_million", description=__doc__)
    parser.add_argument(
        "rows", nargs="*", type=int, default=ROWS, help="sizes; 10⁴, 10⁵ and 10⁶ unless given"
    )
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=PHASES)
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument(
        "--loop", choices=LOOPS, default=LOOPS[0], help="uvloop where installed, as the command"
    )
    parser.add_argument("--folder", help="where the temporary folder is made")
    parser.add_argument("--json", action="store_true", help="the figures as JSON lines instead of a table")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    wished = parser.parse_args()
    unwind_on_sigterm()
    if not wished.json:
        print(HEADER, flush=True)
    sizes: list[dict[str, Any]] = []
    misses: list[str] = []
    for rows in sorted(wished.rows):
        sizes.append(measure(rows, wished))
        misses += missed(sizes[-1], sizes[0])
        if wished.json:
            print(json.dumps(sizes[-1]), flush=True)
    print("missed: " + "; ".join(misses) if misses else "no target missed", file=sys.stderr)
    sys.exit(1 if wished.check and misses else 0)


if __name__ == "__main__":
    main()
