# From payments_async/__init__.py; change that, then run: python -m tools.mirror
"""Collect payments and send payouts, blocking.

    with Payments() as client:
        payout = client.payouts.create(amount=Decimal("50"), currency="XOF", method="mtn_bj",
                                       instrument=Instrument.phone("+22990000000", "BJ"),
                                       reference="invoice-7")

The same names as `payments_async`, with `Payments` for `AsyncPayments`, and the same methods and arguments:
change the import, and drop the `await`. Models, params, errors, limits and events are the same objects.
Public names are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import payments_async
from payments_async._version import __version__ as __version__

if TYPE_CHECKING:
    from payments_async import Amount as Amount
    from payments_async import APIConnectionError as APIConnectionError
    from payments_async import APIStatusError as APIStatusError
    from payments_async import APITimeoutError as APITimeoutError
    from payments_async import AppearanceFields as AppearanceFields
    from payments_async import AppearanceInput as AppearanceInput
    from payments_async import Attempt as Attempt
    from payments_async import AttemptInput as AttemptInput
    from payments_async import AuthenticationError as AuthenticationError
    from payments_async import BadRequestError as BadRequestError
    from payments_async import Checkout as Checkout
    from payments_async import CheckoutRequest as CheckoutRequest
    from payments_async import CheckoutRestriction as CheckoutRestriction
    from payments_async import CheckoutSession as CheckoutSession
    from payments_async import ConfigurationError as ConfigurationError
    from payments_async import ConflictError as ConflictError
    from payments_async import Country as Country
    from payments_async import Customer as Customer
    from payments_async import CustomerFields as CustomerFields
    from payments_async import CustomerInput as CustomerInput
    from payments_async import DeadlineExceeded as DeadlineExceeded
    from payments_async import DecodeError as DecodeError
    from payments_async import DuplicateReference as DuplicateReference
    from payments_async import ExchangeRate as ExchangeRate
    from payments_async import Failure as Failure
    from payments_async import FailureCategory as FailureCategory
    from payments_async import Guard as Guard
    from payments_async import GuardRefused as GuardRefused
    from payments_async import GuardRequest as GuardRequest
    from payments_async import IdempotencyConflict as IdempotencyConflict
    from payments_async import Inspection as Inspection
    from payments_async import Instrument as Instrument
    from payments_async import InvalidRequest as InvalidRequest
    from payments_async import LimitReached as LimitReached
    from payments_async import LimitSnapshot as LimitSnapshot
    from payments_async import LimitStoreUnavailable as LimitStoreUnavailable
    from payments_async import Method as Method
    from payments_async import MethodHealth as MethodHealth
    from payments_async import MethodStatus as MethodStatus
    from payments_async import NextAction as NextAction
    from payments_async import NextActionType as NextActionType
    from payments_async import NotFoundError as NotFoundError
    from payments_async import OutcomeUnknown as OutcomeUnknown
    from payments_async import Page as Page
    from payments_async import Pagination as Pagination
    from payments_async import PaymentAttempt as PaymentAttempt
    from payments_async import PaymentAttemptStatus as PaymentAttemptStatus
    from payments_async import PaymentIntent as PaymentIntent
    from payments_async import PaymentIntentRequest as PaymentIntentRequest
    from payments_async import PaymentIntentStatus as PaymentIntentStatus
    from payments_async import PaymentsError as PaymentsError
    from payments_async import Payout as Payout
    from payments_async import PayoutInstrument as PayoutInstrument
    from payments_async import PayoutRequest as PayoutRequest
    from payments_async import PayoutStatus as PayoutStatus
    from payments_async import PermissionDeniedError as PermissionDeniedError
    from payments_async import PhoneInput as PhoneInput
    from payments_async import PreparedRequest as PreparedRequest
    from payments_async import RateLimitedError as RateLimitedError
    from payments_async import RateLimits as RateLimits
    from payments_async import RefundAvailability as RefundAvailability
    from payments_async import Requery as Requery
    from payments_async import ResponseInfo as ResponseInfo
    from payments_async import ResponseMismatch as ResponseMismatch
    from payments_async import RestrictionFields as RestrictionFields
    from payments_async import SearchIncomplete as SearchIncomplete
    from payments_async import ServerError as ServerError
    from payments_async import UnprocessableError as UnprocessableError
    from payments_async import WaitTimeout as WaitTimeout
    from payments_async import register_hooks as register_hooks

    from . import arguments as arguments
    from . import errors as errors
    from . import events as events
    from . import guard as guard
    from . import models as models
    from . import params as params
    from .client import Payments as Payments

_OURS = {
    "Payments": ".client",
}
_THEIRS = {"AsyncPayments"}
_MODULES = frozenset({"arguments", "errors", "events", "guard", "models", "params"})

__all__ = sorted({*payments_async.__all__, *_OURS} - _THEIRS)  # pyright: ignore[reportUnsupportedDunderAll] # from a table


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_OURS.get(name, "payments_async"), __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
