"""Collect payments and send payouts, awaited.

    async with AsyncPayments() as client:
        payout = await client.payouts.create(amount=Decimal("50"), currency="XOF", method="mtn_bj",
                                             instrument=Instrument.phone("+22990000000", "BJ"),
                                             reference="invoice-7")

`payments_sync` is the same, blocking. Public names are loaded when they are first used.
`docs/architecture.md` shows the rooms of the package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

if TYPE_CHECKING:
    from . import arguments as arguments
    from . import errors as errors
    from . import events as events
    from . import guard as guard
    from . import models as models
    from . import params as params
    from ._codec.decode import register_hooks as register_hooks
    from ._rate_limit.limits import LimitSnapshot as LimitSnapshot
    from ._rate_limit.limits import RateLimits as RateLimits
    from .client import AsyncPayments as AsyncPayments
    from .errors import APIConnectionError as APIConnectionError
    from .errors import APIStatusError as APIStatusError
    from .errors import APITimeoutError as APITimeoutError
    from .errors import AuthenticationError as AuthenticationError
    from .errors import BadRequestError as BadRequestError
    from .errors import ConfigurationError as ConfigurationError
    from .errors import ConflictError as ConflictError
    from .errors import DeadlineExceeded as DeadlineExceeded
    from .errors import DecodeError as DecodeError
    from .errors import DuplicateReference as DuplicateReference
    from .errors import GuardRefused as GuardRefused
    from .errors import IdempotencyConflict as IdempotencyConflict
    from .errors import InvalidRequest as InvalidRequest
    from .errors import LimitReached as LimitReached
    from .errors import LimitStoreUnavailable as LimitStoreUnavailable
    from .errors import NotFoundError as NotFoundError
    from .errors import OutcomeUnknown as OutcomeUnknown
    from .errors import PaymentsError as PaymentsError
    from .errors import PermissionDeniedError as PermissionDeniedError
    from .errors import RateLimitedError as RateLimitedError
    from .errors import ResponseMismatch as ResponseMismatch
    from .errors import SearchIncomplete as SearchIncomplete
    from .errors import ServerError as ServerError
    from .errors import UnprocessableError as UnprocessableError
    from .errors import WaitTimeout as WaitTimeout
    from .guard import Guard as Guard
    from .guard import GuardRequest as GuardRequest
    from .models import Amount as Amount
    from .models import Attempt as Attempt
    from .models import Checkout as Checkout
    from .models import CheckoutSession as CheckoutSession
    from .models import Country as Country
    from .models import Customer as Customer
    from .models import ExchangeRate as ExchangeRate
    from .models import Failure as Failure
    from .models import FailureCategory as FailureCategory
    from .models import Inspection as Inspection
    from .models import Method as Method
    from .models import MethodHealth as MethodHealth
    from .models import MethodStatus as MethodStatus
    from .models import NextAction as NextAction
    from .models import NextActionType as NextActionType
    from .models import Page as Page
    from .models import Pagination as Pagination
    from .models import PaymentAttempt as PaymentAttempt
    from .models import PaymentAttemptStatus as PaymentAttemptStatus
    from .models import PaymentIntent as PaymentIntent
    from .models import PaymentIntentStatus as PaymentIntentStatus
    from .models import Payout as Payout
    from .models import PayoutInstrument as PayoutInstrument
    from .models import PayoutStatus as PayoutStatus
    from .models import RefundAvailability as RefundAvailability
    from .models import Requery as Requery
    from .models import ResponseInfo as ResponseInfo
    from .params import AppearanceFields as AppearanceFields
    from .params import AppearanceInput as AppearanceInput
    from .params import AttemptInput as AttemptInput
    from .params import CheckoutRequest as CheckoutRequest
    from .params import CheckoutRestriction as CheckoutRestriction
    from .params import CustomerFields as CustomerFields
    from .params import CustomerInput as CustomerInput
    from .params import Instrument as Instrument
    from .params import PaymentIntentRequest as PaymentIntentRequest
    from .params import PayoutRequest as PayoutRequest
    from .params import PhoneInput as PhoneInput
    from .params import PreparedRequest as PreparedRequest
    from .params import RestrictionFields as RestrictionFields

_HOMES = {
    "_codec.decode": ("register_hooks",),
    "_rate_limit.limits": ("LimitSnapshot", "RateLimits"),
    "client": ("AsyncPayments",),
    "errors": (
        "APIConnectionError",
        "APIStatusError",
        "APITimeoutError",
        "AuthenticationError",
        "BadRequestError",
        "ConfigurationError",
        "ConflictError",
        "DeadlineExceeded",
        "DecodeError",
        "DuplicateReference",
        "GuardRefused",
        "IdempotencyConflict",
        "InvalidRequest",
        "LimitReached",
        "LimitStoreUnavailable",
        "NotFoundError",
        "OutcomeUnknown",
        "PaymentsError",
        "PermissionDeniedError",
        "RateLimitedError",
        "ResponseMismatch",
        "SearchIncomplete",
        "ServerError",
        "UnprocessableError",
        "WaitTimeout",
    ),
    "guard": ("Guard", "GuardRequest"),
    "models": (
        "Amount",
        "Attempt",
        "Checkout",
        "CheckoutSession",
        "Country",
        "Customer",
        "ExchangeRate",
        "Failure",
        "FailureCategory",
        "Inspection",
        "Method",
        "MethodHealth",
        "MethodStatus",
        "NextAction",
        "NextActionType",
        "Page",
        "Pagination",
        "PaymentAttempt",
        "PaymentAttemptStatus",
        "PaymentIntent",
        "PaymentIntentStatus",
        "Payout",
        "PayoutInstrument",
        "PayoutStatus",
        "RefundAvailability",
        "Requery",
        "ResponseInfo",
    ),
    "params": (
        "AppearanceFields",
        "AppearanceInput",
        "AttemptInput",
        "CheckoutRequest",
        "CheckoutRestriction",
        "CustomerFields",
        "CustomerInput",
        "Instrument",
        "PaymentIntentRequest",
        "PayoutRequest",
        "PhoneInput",
        "PreparedRequest",
        "RestrictionFields",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

_MODULES = frozenset({"arguments", "errors", "events", "guard", "models", "params"})

__all__ = ["__version__", *_HOME]  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
