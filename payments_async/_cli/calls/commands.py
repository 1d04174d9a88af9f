"""The commands for one checkout, one payout or one request, with their help."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import App, Parameter

from ..payouts import payouts
from ..payouts.commands import ONE
from .options import ApiOptions, CallOptions, CheckoutOptions, Endpoint, Method, PayoutOptions, Wait

_CALL: Final = CallOptions()
_REQUEST: Final = ApiOptions()
api: Final = App(name="api", help_epilogue="")
checkouts: Final = App(name="checkouts", help="Collect a payment on a page of the service.")


@checkouts.command(name="create")
def create_checkout(*, order: CheckoutOptions, call: CallOptions = _CALL) -> int:
    """Create a checkout and print the link of its page. The key comes from PAYMENTS_API_KEY."""
    from .requests import create_checkout

    return create_checkout(order, call)


@payouts.command(name="create", group=ONE, help_epilogue="")
def create_payout(*, order: PayoutOptions, call: CallOptions = _CALL) -> int:
    """Send one payout. The same command again pays nothing twice: a reference is paid once, for ever.

    The key comes from PAYMENTS_API_KEY. A live key asks for the amount to be typed back.

    Exit codes: 0 created, or the very same payout was there already; 1 refused, or it failed; 2 nothing can
    be sent until you correct what the message names; 3 not known whether it was paid, the same command finds
    out; 75 the service is away, or the payout has not ended yet, the same command goes on; 130 Ctrl-C.
    """
    from .payouts import create

    return create(order, call)


@payouts.command(name="find", group=ONE, help_epilogue="")
def find_payout(
    reference: str, /, *, created_on_or_after: str | None = None, wait: Wait = None, call: CallOptions = _CALL
) -> int:
    """Look a payout up by its reference. Sends nothing.

    Exit codes: 0 found, with --wait arrived; 1 there is none, or it failed; 3 the list could not be read to
    its end; 75 it has not ended yet.

    Parameters
    ----------
    reference
        As it was given to `create`.
    created_on_or_after
        A date, such as 2026-06-30, at which the search, newest first, may stop.
    """
    from .payouts import find

    return find(reference, created_on_or_after, wait, call)


@api.default
def send_request(
    method: Annotated[Method, Parameter(metavar="METHOD", show_choices=False)],
    path: Annotated[Endpoint, Parameter(metavar="PATH", show_choices=False)],
    /,
    *,
    request: ApiOptions = _REQUEST,
    call: CallOptions = _CALL,
) -> int:
    """Send one request to any endpoint and print the JSON that answers it: `payments api GET /payouts`.

    It goes through the client, so that limits, retries, guard and errors are the same. The key comes from
    PAYMENTS_API_KEY. Numbers are printed with all their digits, on a terminal indented, elsewhere on one
    line. Payouts are sent by `payouts create`.

    Exit codes: 0 done, 1 refused, 2 correct the command, 3 a write without a definite answer, 75 the service
    is away, 130 Ctrl-C.

    Parameters
    ----------
    method
        GET; with --write also POST, PUT, PATCH and DELETE.
    path
        Relative to the base URL, with its query: '/payouts?status=failed'.
    """
    from .requests import send_request

    return send_request(method.upper(), path, request, call)
