"""Compares a record with the request it may belong to: the one comparison of them. Pure (Payout; gap AC).

Names are not compared, nor what a service words as it likes. An account counts where it is shown in full.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from operator import attrgetter
from typing import Any, Final

from .. import models
from .._codec.decode import RequestedFields, requested_fields
from ..errors import ResponseMismatch
from ..models import Amount, Payout
from ..models._masking import HIDDEN
from ..models._record import held
from ..params import Instrument, PreparedRequest, decimal_if_readable

Detail = Decimal | str
MONEY: Final = ("amount", "currency")
ACCOUNT: Final = ("phone_number", "account_number", "bank_code", "address", "network", "memo_tag")
account_of: Final = attrgetter(*ACCOUNT)
"""The fields of an account, of a request or of a record."""
RECEIVER: Final = tuple(f"instrument.{name}" for name in ACCOUNT)
"""The fields that say who gets the money; the service may hide a part of them."""
_PHONE: Final = RECEIVER[0]
_TEXTS: Final = ("currency", "reference", "method")
_HIDDEN: Final = re.compile(r"[*•●#…]+|x{2,}|X{2,}|_{2,}|\.{2,}|-{2,}")
"""What stands for hidden characters of an account: a letter or a separator does only where it is repeated."""
_SEPARATORS: Final = re.compile(r"[ +()]|(?<=[0-9])[-.](?=[0-9])")
_LAST_DIGITS: Final = 8  # digits by which the same phone number is known in any form
_method, _instrument = held(Payout, "method"), held(Payout, "instrument")


def agrees(value: Any, asked: Any) -> bool:
    """Return whether a record is clearly the one asked for; if not, `mismatch` decides."""
    amount = amount_of(value)
    return (
        asked is not None
        and amount is not None
        and amount.value == asked.amount
        and amount.currency == asked.currency
        and (not isinstance(value, Payout) or _is_same_payout(value, asked))
    )


def _is_same_payout(payout: Payout, asked: Any) -> bool:
    """Return whether reference, method and receiver are clearly as asked for; none is made into a record."""
    reference = payout.reference
    if reference != asked.reference and not (reference is None or asked.reference is None):
        return False
    if (method := _method(payout)) is not None and method.value != asked.method:
        return False
    shown, wanted = _instrument(payout), asked.instrument
    if shown is None:
        return True
    if type(wanted) is not Instrument:
        return type(wanted) is dict and tuple(map(wanted.get, ACCOUNT)) == account_of(shown)
    if wanted.account_number is None and wanted.address is None:  # nearly all, and quicker
        return bool(wanted.phone_number == shown.phone_number)
    return account_of(wanted) == account_of(shown)


def mismatch(prepared: PreparedRequest, value: Any) -> ResponseMismatch | None:
    """Make an error if a record's fields differ from the request's; else None."""
    request = requested_fields(prepared.body)
    if agrees(value, request):
        return None
    asked, shown = asked_details(request), shown_details(value)
    differences = {
        name: (HIDDEN, HIDDEN) if name in RECEIVER else (str(asked[name]), str(shown[name]))
        for name, is_same in compare(asked, shown).items()
        if is_same is False
    }
    if not differences:
        return None
    return ResponseMismatch(
        f"{prepared.operation}: the service answered with another record "
        f"({', '.join(sorted(differences))} differ); look it up before you pay again",
        record=value,
        differences=differences,
        operation=prepared.operation,
    )


def asked_details(request: RequestedFields) -> dict[str, Detail]:
    """What a request asks for, of what is compared."""
    given = request.instrument if isinstance(request.instrument, Mapping) else {}
    amount = decimal_if_readable(request.amount)
    found = {"amount": amount if isinstance(amount, Decimal) else None}
    found |= {name: getattr(request, name) for name in _TEXTS}
    found |= {detail: given.get(name) for name, detail in zip(ACCOUNT, RECEIVER, strict=True)}
    return {name: value for name, value in found.items() if isinstance(value, Detail)}


def shown_details(record: Any) -> dict[str, Detail]:
    """What a record shows of the same."""
    amount = amount_of(record) or Amount()
    found: dict[str, Detail | None] = {"amount": value_of(amount), "currency": amount.currency}
    if isinstance(record, Payout):
        method = None if record.method is None else record.method.value
        found |= {"reference": record.reference, "method": method}
        account = (None,) * len(ACCOUNT) if record.instrument is None else account_of(record.instrument)
        found |= dict(zip(RECEIVER, account, strict=True))
    return {name: value for name, value in found.items() if value is not None}


def value_of(amount: Amount) -> Detail | None:
    """The number of an amount that a record shows; its text where it is beyond all that can be asked for."""
    return amount.extra.get("value") if amount.value is None else amount.value


def compare(asked: Mapping[str, Detail], shown: Mapping[str, Detail]) -> dict[str, bool | None]:
    """{field: True if it is shown as asked for, False if otherwise, None where that cannot be told}."""
    return {
        name: _is_same(name, value, shown[name]) if name in shown else None for name, value in asked.items()
    }


def _is_same(name: str, asked: Detail, shown: Detail) -> bool | None:
    if asked == shown:
        return True
    if isinstance(asked, Decimal) and isinstance(shown, Decimal):
        return float(asked) == float(shown) < math.inf  # services round
    if isinstance(asked, Decimal) or isinstance(shown, Decimal):
        return False
    if name in RECEIVER:
        return _is_same_account(asked, shown, is_phone=name == _PHONE or "+" in (asked[:1], shown[:1]))
    return name == "method" and asked.casefold() == shown.casefold()


def _is_same_account(asked: str, shown: str, *, is_phone: bool) -> bool | None:
    """Compare accounts; what may be shown in part, or in another form, cannot be told.

    A phone number may be national, or cut short; countries that change theirs keep the end. An account may be
    the end of its IBAN, and zeros in front may be left out.
    """
    ours, theirs = (_SEPARATORS.sub("", text).casefold() for text in (asked, shown))
    if ours == theirs:
        return True
    if any(asked[slice(*found.span())] != found[0] for found in _HIDDEN.finditer(shown)):
        return None
    if len(asked) == len(shown):
        return False
    short, long = sorted((text.lstrip("0") for text in (ours, theirs)), key=len)
    if not is_phone:
        return None if long == short or (len(short) >= _LAST_DIGITS and long.endswith(short)) else False
    is_part = long.startswith(short) or long.endswith(short[-_LAST_DIGITS:])
    are_numbers = ours.isdecimal() and theirs.isdecimal() and len(short) >= _LAST_DIGITS
    return False if are_numbers and not is_part else None


def amount_of(record: Any) -> Amount | None:
    """The amount of a record; for a checkout, its payment's."""
    found = getattr(record, "amount", None)
    if found is None and is_checkout(record):
        found = getattr(record.payment, "amount", None)
    return found if isinstance(found, Amount) else None


def is_checkout(record: Any) -> bool:
    """Return whether a record is a checkout. Compares the name first, so as not to load the class."""
    return type(record).__name__ == "Checkout" and isinstance(record, models.Checkout)
