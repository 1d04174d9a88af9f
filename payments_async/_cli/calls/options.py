"""The options of the commands for one checkout, one payout or one request. The texts are their help."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final, Literal

import attrs
from cyclopts import Parameter

from ...models.statuses import PaymentIntentStatus, PayoutStatus, words_of
from .._output import FileName, Flag, JsonFlag
from ..payouts.options import BaseUrl, Duration

Source = Annotated[FileName, Parameter(metavar="FILE", allow_leading_hyphen=True)]
"""A file, or `-` for the standard input."""
_LISTS: Final = {"/payouts": PayoutStatus, "/payment/intents": PaymentIntentStatus}
_FILTERED: Final = tuple(
    f"{path}?status={word}" for path, of in _LISTS.items() for word in sorted(words_of(of))
)
if TYPE_CHECKING:
    Method = str
    Endpoint = str
else:  # any text; these are what shells complete
    Method = str | Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
    Endpoint = str | Literal[(*_LISTS, *_FILTERED)]
_WAIT: Final = "Wait so long for its end, such as 15m: created is not arrived."
Wait = Annotated[Duration | None, Parameter(help=_WAIT)]


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class CallOptions:
    """How a call is made and shown."""

    accounts: Flag = False
    """With names and account data, which are masked otherwise."""
    base_url: BaseUrl = None
    json: JsonFlag = False


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class CheckoutOptions:
    """One checkout."""

    amount: str
    """Major units: 50 is 50.00."""
    currency: str
    """Three capital letters, such as GHS."""
    description: str | None = None
    """What it is for, at most 500 characters."""
    return_url: str | None = None
    """The page where the payer lands afterwards."""


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class PayoutOptions:
    """One payout."""

    reference: str
    """Your own name for this payout, such as an invoice's number."""
    amount: str
    """Major units: 50 is 50.00."""
    currency: str
    """Three capital letters, such as GHS."""
    method: str
    """The payout method's code, from the dashboard."""
    instrument: Source
    """A JSON file with the receiving account; - for the standard input. A mobile-money wallet is
    {"type": "phone", "phone_number": "+233200000001", "country": "GH"}, a bank account
    {"type": "bank_account", "account_name": …, "account_number": …, "bank_code": …, "country": …}."""
    description: str | None = None
    """What it is for, at most 500 characters."""
    confirm: Annotated[str | None, Parameter(metavar='"CUR AMOUNT"')] = None
    """The amount to pay, such as "GHS 50", instead of typing it."""
    wait: Wait = None


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class ApiOptions:
    """One request."""

    write: Flag = False
    """Allow a request that may change records and move money."""
    body: Source | None = None
    """A JSON file with the body of a write; - for the standard input."""
    idempotency_key: Annotated[str | None, Parameter(metavar="KEY")] = None
    """8 to 128 characters: a request is carried out once for each key."""
