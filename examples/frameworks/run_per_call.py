"""A program that is not asynchronous, and calls one client of the module with `asyncio.run`, call by call.

    python run_per_call.py

Each call has an event loop and a connection of its own; limits are shared by all. `Payments` does the same
with one connection: use it where you can.
"""

from __future__ import annotations

import asyncio

from payments_async import AsyncPayments, Instrument, Payout

client = AsyncPayments()


def pay(reference: str) -> Payout:
    """Pay one person."""
    return asyncio.run(
        client.payouts.create(
            amount="10.10",
            currency="GHS",
            method="mobile_money",
            instrument=Instrument.phone("+233200000001", "GH"),
            reference=reference,
        )
    )


if __name__ == "__main__":
    for number in range(3):
        payout = pay(f"invoice-{number}")
        print(payout.reference, payout.status)
    print(client.limits_snapshot()["write"].used, "writes counted")
