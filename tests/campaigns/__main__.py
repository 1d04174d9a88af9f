"""All of them at full size, or those that are named; the exit code is 1 when one of them found a breach.

`python -m tests.campaigns [NAME ...]`: a name stands for every size of that campaign.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

CALM = ("--quiet", "--processes", "4", "--tasks", "8")
STORES = ("sqlite", "postgresql")
LIMITED = ("simulated", "postgresql", "valkey")
CAMPAIGNS = (
    ("hostile", "100000"),
    ("outcomes", "100000"),
    ("pacing", "60"),
    ("pacing", "600"),
    *(("shared_limit", store, limit) for store in LIMITED for limit in ("6000", "60000")),
    *(("guard", store, "65000") for store in STORES),
    *(("guard", store, "5000", *CALM, "--windows", "3", "--sums", "0.5") for store in STORES),
    *(("guard", "sqlite", "2500", *CALM, "--sums", "0.3", "--without", rule) for rule in ("held", "paid")),
    *(("guard", "postgresql", "4000", "--without", rule) for rule in ("distrust", "clock")),
    ("waits", "10000"),
    ("webhooks", "1000000"),
    ("walks", "300", "40"),
    ("walks", "200", "6", "--ablate", "all"),
    ("kills", "20000"),
    ("outbox", "50"),
)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.campaigns", description="The long randomised tests.")
    names = sorted({name for name, *_ in CAMPAIGNS})
    parser.add_argument("names", nargs="*", help=f"all unless given: {', '.join(names)}")
    wanted = parser.parse_args().names
    if unknown := sorted({*wanted} - {*names}):
        parser.error(f"there is no campaign {', '.join(unknown)}; there are: {', '.join(names)}")
    failed = False
    for name, *size in CAMPAIGNS:
        if wanted and name not in wanted:
            continue
        print(f"\n{name} {' '.join(size)}".rstrip(), flush=True)
        done = subprocess.run([sys.executable, "-m", f"tests.campaigns.{name}", *size])
        failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
