"""What editors, `help()`, IPython and mocks see of the public classes.

They see every argument by name although methods run on `**arguments`, and the methods of a resource on the
client's class. A name that other SDKs have and the interface has not gets an AttributeError that says what to
do instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any, Final, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def on_class(cls: type[T]) -> T:
    """A class in the place of an attribute that objects set: for `help(AsyncPayments.payouts.create)`."""
    return cls  # type: ignore[return-value] # so that checkers see what objects have


def implemented_by(function: Any) -> Callable[[F], F]:
    """Decorate a signature, written by `tools/mirror`, with the function that a call runs.

    It takes `**arguments`: a dict of what was given is what requests are made of, and what a failed call
    empties. It gets the name, docstring and signature of the decorated one, whose body never runs.
    """

    def named(written: Any) -> Any:
        names = {"co_name": written.__name__, "co_qualname": written.__qualname__}  # for tracebacks
        function.__code__ = function.__code__.replace(**names)
        return update_wrapper(function, written)

    return named


# Names that other SDKs have

_NO_REFUND: Final = (
    "payment_intents.refund_availability(id) says what can be refunded; make the refund in the dashboard, or "
    "by client.request if your service's documentation shows a call"
)
_READ_CHECKOUT: Final = (
    "read it with checkouts.retrieve(id) if it has a checkout, find it with payment_intents.iterate(...), or "
    "read its attempt with payment_intents.retrieve_attempt(id, attempt_id)"
)
_FIND_PAYOUT: Final = (
    "payouts.find(reference=...) looks a payout up by your reference, payouts.sync(id) asks the gateway anew"
)
_FINAL: Final = "what was created cannot be taken back through the API: look in the dashboard, or ask support"
_CREATE_ANOTHER: Final = (
    "what was created cannot be changed: it keeps its metadata and amount; create another"
)
_NO_METHODS: Final = (
    "the methods of a project are in its dashboard; methods.status(method_code, country_code) says how one "
    "is doing, client.request reads a discovery endpoint that your service's documentation shows"
)

ABSENT: Final[Mapping[str, Mapping[str, str]]] = {
    "Payments": {
        **dict.fromkeys(("refunds", "refund"), _NO_REFUND),
        **dict.fromkeys(("payment_methods", "countries", "currencies", "exchange_rates"), _NO_METHODS),
        "customers": "a customer is a field of a payment or payout: customer=CustomerInput(...)",
        "webhooks": "deliveries are received, not listed: see payments_async.webhooks",
        "balance": "look at the balance in the dashboard",
        "payments": "payments are client.payment_intents and client.checkouts",
        "attempts": "attempts are read by client.payment_intents.retrieve_attempt(id, attempt_id)",
    },
    "Payouts": {
        **dict.fromkeys(("retrieve", "get", "read"), _FIND_PAYOUT),
        **dict.fromkeys(("cancel", "reverse", "delete"), _FINAL),
        **dict.fromkeys(("update", "modify"), _CREATE_ANOTHER),
    },
    "PaymentIntents": {
        **dict.fromkeys(("retrieve", "get", "read", "find"), _READ_CHECKOUT),
        **dict.fromkeys(("cancel", "delete", "void"), _FINAL),
        **dict.fromkeys(("update", "modify"), _CREATE_ANOTHER),
        **dict.fromkeys(
            ("confirm", "capture", "create_attempt"), "start the attempt with create(attempt=...)"
        ),
        **dict.fromkeys(("refund", "refunds"), _NO_REFUND),
    },
    "Checkouts": {
        **dict.fromkeys(("list", "iterate", "find"), "list payments instead: payment_intents.iterate(...)"),
        **dict.fromkeys(
            ("cancel", "expire", "delete"), "a session ends by itself: create(expires_in_minutes=...)"
        ),
        **dict.fromkeys(("update", "modify"), _CREATE_ANOTHER),
        **dict.fromkeys(("get", "read"), "it is called retrieve(checkout_id)"),
    },
    "Methods": dict.fromkeys(("list", "iterate", "retrieve", "get"), _NO_METHODS),
}
"""{class, without `Async`: {name: what to do instead}}."""


def explains_absent(cls: type[T]) -> type[T]:
    """Give a class an AttributeError that says what to do instead of a call the interface does not have."""
    instead = ABSENT[cls.__name__.removeprefix("Async")]

    def absent(self: object, name: str) -> Any:
        problem = f"{type(self).__name__!r} object has no attribute {name!r}"
        if name in instead:
            problem += f": the interface has no such call; {instead[name]}"
        elif name == "close" and hasattr(cls, "aclose"):
            problem += ": it is closed by `await client.aclose()`, or by `async with`"
        raise AttributeError(problem, name=name, obj=self)

    cls.__getattr__ = absent  # type: ignore[attr-defined] # set here, so that checkers still find slips
    return cls
