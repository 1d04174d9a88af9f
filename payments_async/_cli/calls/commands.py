"""The commands for one checkout, one payout or one request, with their help."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import App, Parameter
from cyclopts.validators import Number

from .._output import Flag, JsonFlag, JsonLinesFlag
from ..payouts import payouts
from ..payouts.commands import ONE
from ..payouts.options import BaseUrl, Duration

Source = Annotated[str, Parameter(metavar="FILE", allow_leading_hyphen=True)]
"""A file, or `-` for the standard input."""
_DEADLINE: Final = "How long to find out what became of it when no definite answer comes; 2m unless given."
Deadline = Annotated[Duration, Parameter(help=_DEADLINE)]
_ACCOUNTS: Final = "With names and account data, which are masked otherwise."
Accounts = Annotated[bool, Parameter(negative="", show_default=False, help=_ACCOUNTS)]
Most = Annotated[int, Parameter(validator=Number(gte=1, lte=100_000), metavar="N")]
Confirm = Annotated[str | None, Parameter(metavar='"CUR AMOUNT"')]

checkouts: Final = App(name="checkouts", help="Collect a payment on a page of the service.")


@checkouts.command(name="create")
def create_checkout(
    *,
    amount: str,
    currency: str,
    description: str | None = None,
    return_url: str | None = None,
    customer: Source | None = None,
    expires_in_minutes: int | None = None,
    deadline: Deadline = 120.0,
    base_url: BaseUrl = None,
    json: JsonFlag = False,
) -> int:
    """Create a checkout and print the link of its page. The key comes from PAYMENTS_API_KEY.

    Parameters
    ----------
    amount
        Major units: 50 is 50.00.
    currency
        Three capital letters, such as GHS.
    description
        What it is for, at most 500 characters.
    return_url
        The page where the payer lands afterwards.
    customer
        A JSON file such as {"email": "ada@shop.test"}; - for the standard input.
    expires_in_minutes
        30 to 1440.
    """
    from .requests import create_checkout
    from .sending import perform_call

    fields: dict[str, object] = {
        "amount": amount,
        "currency": currency,
        "description": description,
        "return_url": return_url,
    }
    fields |= {"expires_in_minutes": expires_in_minutes}
    work = create_checkout(fields, customer, deadline, base_url)
    return perform_call(work, about="checkout", as_json=json)


@payouts.command(name="create", group=ONE)
def create_payout(
    *,
    reference: str,
    amount: str,
    currency: str,
    method: str,
    instrument: Source,
    description: str | None = None,
    customer: Source | None = None,
    confirm: Confirm = None,
    deadline: Deadline = 120.0,
    accounts: Accounts = False,
    base_url: BaseUrl = None,
    json: JsonFlag = False,
) -> int:
    """Send one payout. The same command again pays nothing twice: a reference is paid once, for ever.

    The key comes from PAYMENTS_API_KEY. A live key asks for the amount to be typed back.

    Exit codes: 0 created, or the very same payout was there already; 1 refused, nothing was paid; 2 nothing
    can be sent until you correct what the message names; 3 not known whether it was paid, look it up with
    `payments payouts find`; 75 nothing was sent, try again later; 130 Ctrl-C.

    Parameters
    ----------
    reference
        Your own name for this payout, such as an invoice's number.
    amount
        Major units: 50 is 50.00.
    currency
        Three capital letters, such as GHS.
    method
        The payout method's code, from the dashboard.
    instrument
        A JSON file with the receiving account; - for the standard input. A mobile-money wallet is
        {"type": "phone", "phone_number": "+233200000001", "country": "GH"}, a bank account {"type":
        "bank_account", "account_name": …, "account_number": …, "bank_code": …, "country": …}.
    description
        What it is for, at most 500 characters.
    customer
        A JSON file with the receiver, such as {"first_name": "Ada"}.
    confirm
        The amount to pay, such as "GHS 50", instead of typing it.
    """
    from .payouts import create
    from .sending import perform_call

    fields: dict[str, object] = {
        "reference": reference,
        "amount": amount,
        "currency": currency,
        "method": method,
    }
    fields |= {"description": description}
    work = create(fields, instrument, customer, confirm, deadline, base_url, accounts=accounts)
    return perform_call(work, about=reference, as_json=json)


@payouts.command(name="find", group=ONE)
def find_payout(
    reference: str,
    /,
    *,
    created_on_or_after: str | None = None,
    accounts: Accounts = False,
    base_url: BaseUrl = None,
    json: JsonFlag = False,
) -> int:
    """Look a payout up by its reference. Sends nothing.

    Exit codes: 0 found, 1 there is none, 3 the list could not be read to its end.

    Parameters
    ----------
    reference
        As it was given to `create`.
    created_on_or_after
        A date, such as 2026-06-30, at which the search, newest first, may stop.
    """
    from .payouts import find
    from .sending import perform_call

    work = find(reference, created_on_or_after, base_url, accounts=accounts)
    return perform_call(work, about=reference, as_json=json)


@payouts.command(name="list", group=ONE)
def list_payouts(
    *,
    status: str | None = None,
    method: str | None = None,
    currency: str | None = None,
    customer_id: str | None = None,
    created_on_or_after: str | None = None,
    created_on_or_before: str | None = None,
    max_items: Most = 20,
    accounts: Accounts = False,
    base_url: BaseUrl = None,
    json: JsonLinesFlag = False,
) -> int:
    """List payouts, newest first. Sends nothing.

    Parameters
    ----------
    status
        One status, such as pending, completed or failed.
    method
        A payout method's code.
    currency
        Three capital letters.
    customer_id
        One customer's.
    created_on_or_after
        A date, such as 2026-06-30.
    created_on_or_before
        A date.
    max_items
        How many.
    """
    from .payouts import list_newest
    from .sending import perform_call

    filters = {"status": status, "method": method, "currency": currency, "customer_id": customer_id}
    filters |= {"created_on_or_after": created_on_or_after, "created_on_or_before": created_on_or_before}
    work = list_newest(filters, max_items, base_url, accounts=accounts)
    return perform_call(work, about="payouts", as_json=json)


@payouts.command(name="wait", group=ONE)
def wait_payout(
    payout_id: Annotated[str | None, Parameter(metavar="ID")] = None,
    /,
    *,
    reference: str | None = None,
    deadline: Duration = 900.0,
    accounts: Accounts = False,
    base_url: BaseUrl = None,
    json: JsonFlag = False,
) -> int:
    """Wait until a payout has ended. Sends nothing.

    Exit codes: 0 the money arrived, 1 it did not, or there is no such payout, 75 not ended yet.

    Parameters
    ----------
    payout_id
        As `create`, `find` and `list` show it.
    reference
        Your own name for the payout, instead of ID.
    deadline
        How long to wait; 15m unless given.
    """
    from .payouts import wait
    from .sending import perform_call

    work = wait(payout_id, reference, deadline, base_url, accounts=accounts)
    return perform_call(work, about=reference or payout_id or "", as_json=json)


def api(
    method: Annotated[str, Parameter(metavar="METHOD")],
    path: Annotated[str, Parameter(metavar="PATH")],
    /,
    *,
    write: Flag = False,
    body: Source | None = None,
    idempotency_key: Annotated[str | None, Parameter(metavar="KEY")] = None,
    confirm: Confirm = None,
    accounts: Accounts = False,
    base_url: BaseUrl = None,
    json: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """Send one request to any endpoint and print the JSON that answers it: `payments api GET /payouts`.

    It goes through the client, so that limits, retries, guard and errors are the same. The key comes from
    PAYMENTS_API_KEY. Numbers are printed with all their digits.

    Exit codes: 0 done, 1 refused, 2 correct the command, 3 a write without a definite answer, 75 the service
    is away, 130 Ctrl-C.

    Parameters
    ----------
    method
        GET; with --write also POST, PUT, PATCH and DELETE.
    path
        Relative to the base URL, with its query: '/payouts?status=failed'.
    write
        Allow a request that may change records and move money.
    body
        A JSON file with the body of a write; - for the standard input.
    idempotency_key
        8 to 128 characters: a request is carried out once for each key.
    confirm
        The amount that POST /payouts pays with a live key, such as "GHS 50", instead of typing it.
    json
        What ends the command early as JSON, too.
    """
    from .requests import ApiRequest, send_request
    from .sending import perform_call

    request = ApiRequest.read(method, path, body, idempotency_key, writes=write)
    work = send_request(request, confirm, base_url, accounts=accounts)
    return perform_call(work, about=path.partition("?")[0], as_json=json)


def trigger(
    event: Annotated[str, Parameter(metavar="EVENT")],
    /,
    *,
    reference: str | None = None,
    record_id: Annotated[str | None, Parameter(name="--id")] = None,
    sandbox: str | None = None,
    json: JsonFlag = False,
) -> int:
    """Have `payments sandbox` end a record, so that it changes and its webhook is sent.

    EVENT is payout.completed, payout.failed, payment.completed, payment.failed, payment.attempt.failed,
    payment.expired or payment.refunded. A live key is refused. A record that has ended
    cannot end otherwise; under `payments sandbox --scenario 'complete manual'` each one waits for this
    command.

    Parameters
    ----------
    event
        What happens to the record.
    reference
        The reference of the newest such record.
    record_id
        Its id, or that of its checkout session, instead.
    sandbox
        The sandbox's address; PAYMENTS_BASE_URL, or http://127.0.0.1:7788, unless given.
    """
    from .trigger import trigger

    return trigger(event, reference, record_id, sandbox, as_json=json)
