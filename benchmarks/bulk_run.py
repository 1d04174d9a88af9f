"""Does one process keep a full key busy, 60,000 payouts a minute? `python -m benchmarks.bulk_run [ROWS]`

The real command, in a process of its own, over TCP, against the sandbox with its limit enforced.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from benchmarks import bulk_rows
from benchmarks.bulk_service import Service, serving, started, unwind_on_sigterm
from benchmarks.bulk_watch import Usage, Watch

ROWS = 100_000
LIMIT = 60_000
"""Creations a minute (`docs/interface.md`, Rate limits)."""
MIB = 1 << 20


@attrs.frozen
class Paid:
    """What the paying process left behind."""

    certificate: Mapping[str, Any]
    exit_code: int
    watch: Watch
    ended: float
    """Seconds since 1970."""


def by_command(file: Path, ledger: Path, concurrency: int, variables: Mapping[str, str]) -> Paid:
    """Pay with `payments payouts run`, which leaves its certificate beside the ledger."""
    command = [sys.executable, "-m", "payments_async._cli", "payouts", "run", str(file), "--json"]
    options = ["--ledger", str(ledger), "--concurrency", str(concurrency)]
    with started([*command, *options], variables) as process:
        with Watch(process.pid) as watch:
            out, _ = process.communicate()
        ended = time.time()
    certificate = next(ledger.parent.glob("*.certificate.json"), None)
    if certificate is None:
        raise SystemExit(f"no certificate was written; the command said:\n{out[-2000:]}")
    return Paid(json.loads(certificate.read_text()), process.returncode, watch, ended)


def by_library(file: Path, ledger: Path, concurrency: int, variables: Mapping[str, str]) -> Paid:
    """Pay with `PayoutBatch`."""
    command = [sys.executable, "-m", "benchmarks.bulk_pay", str(file), str(ledger)]
    command += ["--concurrency", str(concurrency)]
    with started(command, variables) as process:
        with Watch(process.pid) as watch:
            out, _ = process.communicate()
        ended = time.time()
    if process.returncode:
        raise SystemExit(f"the paying process ended with {process.returncode}")
    told = {line["phase"]: line for line in map(json.loads, out.splitlines())}
    return Paid(told["certify"]["certificate"], told["run"]["exit_code"], watch, ended)


def _sandbox(wished: argparse.Namespace) -> AbstractContextManager[Service]:
    return serving("bulk_sandbox", str(wished.scale), str(wished.latency))


def measure(wished: argparse.Namespace) -> dict[str, Any]:
    """One run; everything in a temporary folder."""
    pay = by_library if wished.library else by_command
    with (
        tempfile.TemporaryDirectory(prefix="bulk-run-") as folder,
        _sandbox(wished) as service,
    ):
        file, ledger = Path(folder, "payouts.csv"), Path(folder, "payouts.ledger")
        bulk_rows.write(file, wished.rows)
        with Watch(service.pid) as watch:
            variables = {**service.variables, "PAYMENTS_RATE_SHARE": f"1/{wished.scale}"}
            paid = pay(file, ledger, wished.concurrency, variables)
        return figures(wished, paid, service.account(), watch)


def figures(
    wished: argparse.Namespace, paid: Paid, account: Mapping[str, Any], sandbox: Watch
) -> dict[str, Any]:
    """What the run comes to."""
    first, last = account["first"], account["last"]
    sending = paid.watch.between(first, last)
    grown = account["memory"] - account["memory_idle"]
    return {
        "rows": wished.rows,
        "through": "library" if wished.library else "command",
        "concurrency": wished.concurrency,
        "latency": wished.latency,
        "load": os.getloadavg()[0],
        "seconds": last - first,
        "per_minute": account["payouts"] * 60 / (last - first) if last > first else 0.0,
        "share_of_limit": account["payouts"] * 60 / (last - first) * wished.scale / LIMIT,
        "refused": account["refused"],
        "requests": account["requests"],
        "uncounted": account["uncounted"],
        "busiest_minute": account["busiest_minute"],
        "peak_mib": paid.watch.peak / MIB,
        "before_first": first - paid.watch.began,
        "sending": _usage(sending),
        "sandbox": _usage(sandbox.between(first, last)),
        "sandbox_bytes_a_payout": grown / max(1, account["payouts"]),
        "exit_code": paid.exit_code,
        "after_last": paid.ended - last,
        "exact": exact(wished.rows, paid.certificate, account),
    }


def exact(rows: int, certificate: Mapping[str, Any], account: Mapping[str, Any]) -> bool:
    """Whether input, certificate and the sandbox's books agree, in number and to the cent."""
    expected = bulk_rows.totals(rows)
    created = {currency: Decimal(sums["created"]) for currency, sums in certificate["sums"].items()}
    booked = {currency: Decimal(amount) for currency, amount in account["sums"].items()}
    counted = certificate["rows"]["created"] == account["payouts"] == rows
    return bool(
        certificate["clean"] and counted and not account["duplicates"] and expected == created == booked
    )


def _usage(used: Usage) -> dict[str, Any]:
    threads = {name: cpu / used.wall for name, cpu in used.threads.items()} if used.wall else {}
    return {
        "core": used.share,
        "user": used.user,
        "system": used.system,
        "wall": used.wall,
        "threads": threads,
        "waited": used.waited / used.wall if used.wall else 0.0,
    }


def missed(f: Mapping[str, Any]) -> list[str]:
    """The targets that these figures miss."""
    targets = {
        "99 % of the limit": f["share_of_limit"] >= 0.99,
        "no 429": not f["refused"] and not f["uncounted"],
        "less than 200 MiB": f["peak_mib"] < 200,
        "less than 60 % of a core while sending": f["sending"]["core"] < 0.6,
        "a clean certificate, exact against the books": f["exact"] and f["exit_code"] == 0,
    }
    return [target for target, reached in targets.items() if not reached]


def told(f: Mapping[str, Any]) -> str:
    """The figures as a Markdown table."""
    sending, sandbox = f["sending"], f["sandbox"]
    threads = ", ".join(f"{name} {share:.0%}" for name, share in sending["threads"].items())
    per_row = (sending["user"] + sending["system"]) / f["rows"] * 1e6
    lines = [
        ("rows, seconds from the first to the last", f"{f['rows']:,}, {f['seconds']:.1f} s", ""),
        ("under way at a time, answers later by", f"{f['concurrency']}, {f['latency'] * 1e3:.0f} ms", ""),
        ("creations a minute", f"{f['per_minute']:,.0f} ({f['share_of_limit']:.2%} of the limit)", "≥ 99 %"),
        ("429", f"{f['refused']}", "0"),
        ("busiest minute, of any", f"{f['busiest_minute']:,}", ""),
        ("peak memory (VmHWM)", f"{f['peak_mib']:.0f} MiB", "< 200 MiB"),
        ("CPU while sending", f"{sending['core']:.0%} of a core, {per_row:.0f} µs a row", "< 60 %"),
        ("… user, system", f"{sending['user']:.1f} s, {sending['system']:.1f} s", ""),
        ("… by thread", threads, ""),
        ("… ready, and no core free", f"{sending['waited']:.0%} of the time", ""),
        ("from the start to the first payout, file imported", f"{f['before_first']:.1f} s", ""),
        ("certificate clean, exact to the cent", "yes" if f["exact"] else "NO", "yes"),
        ("from the last payout to the end, certificate written", f"{f['after_last']:.1f} s", ""),
        ("the sandbox meanwhile", f"{sandbox['core']:.0%} of a core", ""),
        ("… memory a payout", f"{f['sandbox_bytes_a_payout'] / 1024:.1f} KiB", ""),
        ("load of the machine", f"{f['load']:.1f}", ""),
    ]
    head = "| one process, a full key | measured | target |\n| --- | --- | --- |\n"
    return head + "\n".join(f"| {name} | {value} | {target} |" for name, value, target in lines)


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bulk_run", description=__doc__)
    parser.add_argument("rows", nargs="?", type=int, help=f"{ROWS:,} unless given, less when scaled")
    parser.add_argument("--scale", type=int, default=1, help="divide rows and limit by this")
    parser.add_argument(
        "--latency", type=float, default=0.0, help="seconds by which the sandbox answers later"
    )
    parser.add_argument("--concurrency", type=int, default=64, help="rows under way at a time")
    parser.add_argument("--library", action="store_true", help="pay with PayoutBatch, not with the command")
    parser.add_argument("--json", action="store_true", help="the figures as JSON instead of a table")
    parser.add_argument("--check", action="store_true", help="exit 1 when a target is missed")
    wished = parser.parse_args()
    unwind_on_sigterm()
    wished.rows = wished.rows or ROWS // wished.scale
    f = measure(wished)
    print(json.dumps(f, indent=2) if wished.json else told(f))
    if misses := missed(f):
        print("missed: " + "; ".join(misses), file=sys.stderr)
    sys.exit(1 if wished.check and misses else 0)


if __name__ == "__main__":
    main()
