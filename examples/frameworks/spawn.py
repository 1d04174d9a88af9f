"""Payouts from several processes that are spawned: each has a client of its own.

python spawn.py
"""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor

from payments_sync import Instrument, Payments

WORKERS = 2
_client: Payments


def start() -> None:
    """Begin a process. It shares the key's limits with the others."""
    global _client
    os.environ["PAYMENTS_RATE_SHARE"] = f"1/{WORKERS}"
    _client = Payments()
    _client.warm_up(deadline=10)


def pay(reference: str) -> str | None:
    """Pay one person, in a process of the pool."""
    wallet = Instrument.phone("+233200000001", "GH")
    payout = _client.payouts.create(
        amount="10.10", currency="GHS", method="mobile_money", instrument=wallet, reference=reference
    )
    return payout.reference  # a record can be sent, too; a client cannot


def main() -> None:
    """Pay in two processes."""
    spawning = multiprocessing.get_context("spawn")
    references = [f"invoice-{number}" for number in range(4)]
    with ProcessPoolExecutor(WORKERS, spawning, initializer=start) as pool:  # ends when `start` raises
        print(sorted(filter(None, pool.map(pay, references))))
    try:
        with Payments() as client:
            spawning.Process(target=print, args=(client,)).start()
    except TypeError as error:
        print("TypeError:", error)


if __name__ == "__main__":
    main()
