"""A checkout's link; `payments api`: one request to any endpoint."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final, Self
from urllib.parse import parse_qsl, unquote

import attrs

from ...errors import NotFoundError, OutcomeUnknown
from ...models import Checkout
from ...models._masking import clean
from ...models._record import json_text
from ...params import CustomerInput
from .._exit_codes import CommandEnded, Exit
from ..payouts.command_context import CommandContext, open_client
from .json_values import read_fields, read_object, without_accounts
from .payouts import confirm_amount, look_up
from .sending import Work, advised, require_clear_amount, send_surely

_PAYOUTS: Final = "/payouts"
_NO_LINK: Final = "nobody has its link, so it collects nothing; the same command makes another one"


def create_checkout(
    fields: Mapping[str, Any], customer: str | None, deadline: float, base_url: str | None
) -> Work:
    """The work that makes a checkout. Raises CommandEnded for a file that cannot be used."""
    files: dict[str, Any] = (
        {} if customer is None else {"customer": read_fields(customer, "--customer", CustomerInput)}
    )

    async def work(context: CommandContext) -> Exit:
        async with open_client(base_url) as client:
            require_clear_amount(fields)
            prepared = client.checkouts.prepare(**fields, **files)
            made, _ = await send_surely(client, prepared, deadline, _NO_LINK, context)
            _show_link(made, context)
        return Exit.DONE

    return work


def _show_link(made: Checkout, context: CommandContext) -> None:
    session = made.checkout
    assert session is not None  # a creation that is answered without it raises
    payment_id = made.payment.id if made.payment is not None else None
    until = session.expires_at.strftime("%Y-%m-%d %H:%M UTC") if session.expires_at else "not known"
    context.show.step("Link", session.url, wrap=False, url=session.url, id=session.id, payment_id=payment_id)
    lines = {"Checkout": session.id, "Payment": payment_id or "not shown", "Until": until}
    for name, text in () if context.as_json else lines.items():
        context.show.step(name, text, good=None)


@attrs.frozen
class ApiRequest:
    """One request of `payments api`."""

    method: str
    path: str
    query: Mapping[str, str] = attrs.field(repr=False)
    body: Mapping[str, Any] | None = attrs.field(repr=False)
    key: str | None

    @classmethod
    def read(cls, method: str, path: str, body: str | None, key: str | None, *, writes: bool) -> Self:
        """Read the arguments. Raises CommandEnded; a write needs `writes`."""
        method = method.upper()
        if method != "GET" and not writes:
            problem = f"{clean(method)} may change records and move money"
            raise CommandEnded(f"{problem}: add --write if it is meant; nothing was sent", Exit.USAGE)
        if method == "GET" and (body is not None or key is not None):
            raise CommandEnded("GET takes no --body and no --idempotency-key", Exit.USAGE)
        place, _, query = path.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True)
        if len(dict(pairs)) != len(pairs):
            raise CommandEnded("PATH: its query names a parameter twice; give each once", Exit.USAGE)
        return cls(method, place, dict(pairs), None if body is None else read_object(body, "--body"), key)

    @property
    def payout(self) -> Mapping[str, Any] | None:
        """The fields of the payout that it makes; None for any other request."""
        # as a server may read it
        path = unquote(self.path).casefold().partition(";")[0].rstrip("/")
        is_payout = self.method == "POST" and path == _PAYOUTS
        return (self.body or {}) if is_payout else None


def send_request(request: ApiRequest, given: str | None, base_url: str | None, *, accounts: bool) -> Work:
    """The work that sends a request and prints its answer. Raises CommandEnded for a needless `given`."""
    if given is not None and request.payout is None:
        raise CommandEnded("--confirm is for POST /payouts alone; nothing was sent", Exit.USAGE)

    async def work(context: CommandContext) -> Exit:
        async with open_client(base_url) as client:
            if request.payout is not None:
                _confirm(request.payout, given, context)
            options: dict[str, Any] = {"idempotency_key": request.key} if request.key else {}
            if request.body is not None:
                options["json"] = request.body
            with advised(lambda error: _advice(request, error, base_url), context):
                try:
                    answer = await client.request(
                        request.method, request.path, params=request.query, **options
                    )
                except NotFoundError as error:
                    if request.method != "GET" or error.message is None:  # not the service's answer
                        raise
                    problem = f"the service has nothing at this path: {error.message}"
                    raise CommandEnded(problem, Exit.REFUSED) from error
            context.interrupts.is_answered = request.method != "GET"
            sys.stdout.write(clean(json_text(answer if accounts else without_accounts(answer))) + "\n")
        return Exit.DONE

    return work


def _confirm(payout: Mapping[str, Any], given: str | None, context: CommandContext) -> None:
    """Have the amount of a payout confirmed, as `payouts create` does; the service judges anything else."""
    amount, currency = payout.get("amount"), payout.get("currency")
    if isinstance(amount, Decimal | int) and not isinstance(amount, bool) and isinstance(currency, str):
        confirm_amount(currency, Decimal(amount), given, context)
        return
    raise CommandEnded("--body: a payout needs an amount (a number) and a currency", Exit.USAGE)


def _advice(request: ApiRequest, error: OutcomeUnknown, base_url: str | None) -> str:
    key = f"--idempotency-key {shlex.quote(error.idempotency_key or '')}"
    again = f"The same command with {key} sends the same request again, which is carried out once"
    reference = (request.payout or {}).get("reference")
    if isinstance(reference, str) and any(attempt.status == 409 for attempt in error.attempts):
        return f"The reference may be taken: {look_up(reference, base_url)}"
    return f"{again}; {look_up(reference, base_url)}" if isinstance(reference, str) else again
