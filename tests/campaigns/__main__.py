"""All of them at full size; the exit code is 1 when one of them found a breach."""

from __future__ import annotations

import subprocess
import sys

CAMPAIGNS = (
    ("hostile", "100000"),
    ("pacing", "60"),
    ("pacing", "600"),
    ("waits", "10000"),
    ("sandbox_promises", "1000000"),
    ("kills", "20000", "50"),
    ("deletions", "2000", "10"),
    ("two_ledgers", "2000", "10"),
    ("first_send", "1000000", "6"),
    ("asking", "1000"),
)

failed = False
for name, *size in CAMPAIGNS:
    print(f"\n{name} {' '.join(size)}", flush=True)
    failed |= subprocess.run([sys.executable, "-m", f"tests.campaigns.{name}", *size]).returncode != 0
sys.exit(failed)
