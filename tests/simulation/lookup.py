"""The model engine's look at the list: one scan for one row, and what it found."""

from __future__ import annotations

from payments_async.bulk._protocol.clocks import scan_start
from payments_async.bulk._protocol.identifiers import PROOF_KEY
from payments_async.bulk._protocol.matching import Detail, Expected, Found, Match, match_of

from .ledger import Entry
from .service import Payment
from .worker import Worker

_PAGE = 3


async def scan(worker: Worker, entry: Entry, *, everywhere: bool) -> tuple[bool, Payment | None]:
    """Newest first, page by page: whether it came to the end, and what has the row's reference."""
    reference = worker.named(entry)[0]
    assert entry.first_intent is not None
    since = None if everywhere else scan_start(entry.first_intent)
    currency = None if everywhere else "XOF"
    last: Payment | None = None
    while True:
        page = await worker.page(since, currency, last)
        if page is None:
            worker.world.note("scan cut short")
            return False, None
        for payment in page[:_PAGE]:
            if payment.reference == reference:
                return True, payment
        if len(page) <= _PAGE:
            return True, None
        last = page[_PAGE - 1]


def compare(worker: Worker, entry: Entry, payment: Payment) -> Match:
    """Whose payout that is."""
    row, plan = entry.body.row, worker.world.plan
    proof = worker.identity(entry).proof(entry.body.content) if plan.proofs else None
    account = row if payment.body is None else payment.body.row
    asked = _details(entry.body.amount, "XOF", row)
    shown = _details(payment.amount, payment.currency, account)
    metadata = None if payment.proof is None else {PROOF_KEY: payment.proof}
    matched = match_of(Expected(asked, proof), Found(shown, metadata))
    worker.world.note(f"found: {matched}")
    return matched


def _details(amount: Detail, currency: str, account: str) -> dict[str, Detail]:
    return {"amount": amount, "currency": currency, "instrument.phone_number": account}
