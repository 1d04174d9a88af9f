"""Advice on what the service may accept without a word, and take for something else (gaps L and O)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from .._api.request_schemas import CHECKOUT, CUSTOMER, INTENT, PAYOUT, is_web_address
from .._common.iso_codes import currency, is_currency
from .._common.masking import mask
from .._common.money import is_expressible
from .._records.payout_json import instrument_type
from ._evidence import AdvisorEvidence, Finding, ObservedRequest, ids

_FIELDS: Final[Mapping[str | None, Mapping[str, object]]] = {
    "checkouts.create": CHECKOUT,
    "payment_intents.create": INTENT,
    "payouts.create": PAYOUT,
}
_CODE: Final = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*", re.ASCII)
_WORDS: Final[Mapping[str, frozenset[str]]] = {
    "phone": frozenset({"mobile", "momo", "mtn", "moov", "orange", "airtel", "wave", "mpesa", "wallet"}),
    "bank_account": frozenset({"bank", "iban", "sepa", "ach", "swift"}),
    "crypto_address": frozenset({"crypto", "usdt", "usdc", "btc", "bitcoin"}),
}
"""Words in the code of a payout method, and the instrument that goes with them."""
_SHOWN: Final = 40
"""Characters of the caller's own text in a title."""


def accepted_as_it_is(evidence: AdvisorEvidence) -> Iterator[Finding]:
    """Requests that were accepted, although a field cannot mean what was wanted."""
    doubted: dict[tuple[str | None, str], list[ObservedRequest]] = {}
    for sent in evidence.requests:
        if sent.made:
            for doubt in _doubts(sent.log.operation, sent.fields):
                doubted.setdefault((sent.log.operation, doubt), []).append(sent)
    for (operation, doubt), shown in doubted.items():
        yield Finding(
            "accepted_as_is",
            "request",
            f"{operation}: {doubt}",
            "The sandbox accepts it, as the service may. The service may also refuse it, leave the field "
            "out, or take it for something else.",
            "Endpoints",
            "Correct the field. The SDK refuses or completes most of these before anything is sent.",
            ids(shown),
            doubt,
        )


def _doubts(operation: str | None, body: Mapping[str, object]) -> Iterator[str]:
    """What cannot be meant in a body that was accepted."""
    yield from _misspelt("", body, _FIELDS[operation])
    yield from _misspelt("customer.", body.get("customer"), CUSTOMER)
    for name in ("return_url", "webhook_url"):
        if (given := body.get(name)) is not None and not is_web_address(str(given)):
            yield f"{name} is no http or https address"
    yield from _of_money(body["amount"], str(body["currency"]))
    if operation == "payouts.create":
        instrument = body["instrument"]
        kind = instrument_type(instrument) if isinstance(instrument, dict) else None
        yield from _of_method(str(body["method"]), kind if isinstance(kind, str) else None)


def _misspelt(parent: str, given: object, known: Mapping[str, object]) -> Iterator[str]:
    for name in given if isinstance(given, dict) else ():
        if name not in known and (near := get_close_matches(_plain(name), known, n=1, cutoff=0.75)):
            yield f"{parent}{name[:_SHOWN]} is no field; {parent}{near[0]} is one"


def _plain(name: str) -> str:
    """A name as the interface writes names: `first_name` for `firstName`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name[:_SHOWN]).lower()


def _of_money(amount: object, code: str) -> Iterator[str]:
    if not is_currency(code):
        yield f"{code[:_SHOWN]} is no currency of ISO 4217"
    elif isinstance(amount, Decimal) and not is_expressible(amount, currency(code).unit):
        yield f"the amount has more decimals than {code}, which has {currency(code).digits}"


@lru_cache(maxsize=512)
def _of_method(method: str, kind: str | None) -> tuple[str, ...]:
    if not _CODE.fullmatch(method):
        return ("the method has not the form of a method's code",)  # it may be an account: it is not shown
    words = set(re.split("[_-]", method))
    fits = {wanted for wanted, signs in _WORDS.items() if words & signs}
    if kind is None or not fits or kind in fits:
        return ()
    return (f"the instrument is a {kind}, and the method is {mask(method[:_SHOWN])}",)
