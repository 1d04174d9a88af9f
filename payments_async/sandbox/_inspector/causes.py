"""Failures grouped by their cause: how many, for how much money, since when, and what to do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode, urlsplit

import attrs

from .._common.iso_codes import currency, is_currency
from .._common.money import DECIMALS, plain, total
from .._common.operations import CONSOLE
from .._common.rate_limits import SandboxLimits
from .._common.values import Answer, Change, LoggedRequest
from .._control_api.failure_reasons import reason
from .._journal import Item, LoggedExchange
from .._records.records import AttemptRecord, PaymentRecord, PayoutRecord
from .._traffic import outcome_of
from .._webhooks import Webhook, WebhookTry
from ..advisor._evidence import grouped, observe
from .filters import got, page_of, state_of, tone

Money = tuple[str, Decimal]
"""A currency and an amount in its major units."""

MEMBERS: Final = 8
"""How many failures of one cause are shown, the newest of them."""
_LONGEST: Final = 20
"""Characters of a path's first part, which is a secret when it is longer."""
_MOST: Final = Decimal(10) ** 24
"""Above this a refused amount is no money, and its digits would take long to write."""

_DOUBT = (
    "Nobody knows if it was carried out. Send the same request with the same idempotency key, or look the "
    "record up."
)
_FIXES: Final[Mapping[str, str]] = {
    "401": "The key is missing, unknown or no longer active: send the secret key as a bearer token.",
    "403": "Call from an address that is on the key's allowlist.",
    "404": "Check the id and the address: there is no such record or operation.",
    "409": "An earlier payout has this reference: look it up. Do not send it under another reference.",
    "422": "Correct the field and send it as a new request: nothing was created.",
    "429": "Wait for Retry-After before the next try, and send no faster than the limit.",
    "payout": "It moved no money. Send a new payout with a new reference once the cause is gone.",
    "attempt": "The payer may try again while the payment is open.",
    "refused": "Correct the request and send it as a new one: nothing was created.",
    "lost_request": "It was not carried out. Send the same request again.",
}
"""What to do about a status of HTTP, a fault, or a failed record of a kind; the others are in doubt."""


@attrs.frozen
class LoggedFailure:
    """One thing that failed, and the cause under which it is counted."""

    title: str
    """The cause in words."""
    end: str
    """How it ended, in a word: a status."""
    tone: str
    fix: str
    at: float
    name: str
    href: str
    every: str
    """The address of a list of all with this cause."""
    money: Money | None = None


@attrs.frozen
class FailureGroup:
    """A cause with what failed by it. Times are seconds since 1970."""

    title: str
    end: str
    tone: str
    fix: str
    count: int
    sums: Sequence[str]
    """The money of each currency."""
    first: float
    last: float
    members: Sequence[tuple[str, str]]
    """Names and addresses of the newest of them."""
    every: str
    """The address of a list of all of them."""


def causes(failures: Iterable[LoggedFailure]) -> list[FailureGroup]:
    """Group failures, the most frequent cause first."""
    groups = grouped(failures, lambda one: (one.title, one.end, one.fix))
    found = [_cause(alike[0], alike) for alike in groups.values()]
    return sorted(found, key=lambda cause: -cause.count)


def _cause(first: LoggedFailure, alike: Sequence[LoggedFailure]) -> FailureGroup:
    newest = sorted(alike, key=lambda one: -one.at)
    return FailureGroup(
        first.title,
        first.end,
        first.tone,
        first.fix,
        len(alike),
        sums(one.money for one in alike),
        newest[-1].at,
        newest[0].at,
        [(one.name, one.href) for one in newest[:MEMBERS]],
        first.every,
    )


def sums(amounts: Iterable[Money | None]) -> list[str]:
    """The sum of each currency, as in `GHS 1,250.75`."""
    by_currency: dict[str, list[Decimal]] = {}
    for code, amount in filter(None, amounts):
        by_currency.setdefault(code, []).append(amount)
    return [currency(code).plain(total(own)) for code, own in sorted(by_currency.items())]


def failed_items(
    items: Iterable[Item],
    find: Callable[[str], PayoutRecord | PaymentRecord | None],
    limits: SandboxLimits,
) -> Iterator[LoggedFailure]:
    """The failures among the entries of a log, without its webhooks."""
    explained = _Reasons(limits)
    for item in items:
        if isinstance(item, LoggedExchange):
            yield _request(item, explained)
        elif isinstance(item, Change) and (record := find(item.id)) is not None and item.kind != "payment":
            yield _record(item, record)  # a payment fails with its attempt


def failed_webhooks(webhooks: Iterable[Webhook]) -> Iterator[LoggedFailure]:
    """The deliveries that have not arrived although they were tried, or will never be tried."""
    for hook in webhooks:
        tried = hook.tries[-1] if hook.tries else None
        if hook.state in ("delivered", "sending") or (hook.state == "waiting" and tried is None):
            continue
        answer = hook.reason if tried is None else tried.error or f"answered {tried.status}"
        yield LoggedFailure(
            f"{_place(hook.url)}: {answer}",
            state_of(hook),
            tone(state_of(hook)),
            _webhook_fix(tried),
            hook.at if tried is None else tried.at,
            hook.id,
            page_of(hook.id),
            f"{CONSOLE}webhooks?{urlencode({'state': state_of(hook)})}",
        )


def _place(url: str) -> str:
    """The part of an address that all records share: the rest of its path may be a secret of each."""
    to = urlsplit(url)
    first, _, rest = to.path[1:].partition("/")
    path = "…" if len(first) > _LONGEST else f"{first}/…" if rest else first
    return f"{to.scheme}://{to.netloc.rpartition('@')[2]}/{path}"


def _webhook_fix(tried: WebhookTry | None) -> str:
    if tried is None:
        return "Nothing was sent."
    if tried.status is None:
        return "Start what receives there, or correct the webhook_url."
    if tried.status in (404, 405):
        return "Serve this path for POST, or correct the webhook_url."
    return "Find out from the receiver's own log why. Answer with a 2xx at once, and work on it afterwards."


class _Reasons:
    """Says why a request failed, once for all that were answered alike."""

    def __init__(self, limits: SandboxLimits) -> None:
        self._limits = limits
        self._known: dict[tuple[object, ...], str] = {}

    def of(self, exchange: LoggedExchange) -> str:
        log, answer = exchange.log, exchange.answer
        alike = (log.operation, log.status, log.fault, _body(answer))
        text = self._known.get(alike)
        if text is None:
            gone = "its answer is no longer kept" if answer is None else f"the fault {log.fault}"
            text = (reason(exchange, self._limits) or gone).partition("; Retry-After")[0]
            self._known[alike] = text
        return text


def _body(answer: Answer | None) -> bytes:
    return answer.body if answer else b""


def _request(exchange: LoggedExchange, reasons: _Reasons) -> LoggedFailure:
    log, (end, colour) = exchange.log, got(exchange.log.status, exchange.log.fault)
    fault = "The sandbox was told to simulate this. " if log.fault else ""
    what = log.operation or f"{log.method} without an operation"
    is_refused = outcome_of(log.status, log.fault) == "refused"
    fix = _FIXES.get(end) or _FIXES.get(log.fault or "") or (_FIXES["refused"] if is_refused else _DOUBT)
    return LoggedFailure(
        f"{what}: {reasons.of(exchange)}",
        end,
        colour,
        fault + fix,
        log.at,
        log.request_id,
        page_of(log.request_id),
        f"{CONSOLE}?{urlencode({'find': _search(log, end)})}",
        _money(exchange),
    )


def _search(log: LoggedRequest, end: str) -> str:
    """The search for the requests that ended so."""
    operation = f" op:{log.operation}" if log.operation else ""
    return f"is:failed status:{'none' if end == 'no answer' else end}{operation}"


def _money(exchange: LoggedExchange) -> Money | None:
    """The money that a request to create a record names; None for another, and for what is no amount."""
    fields = observe(exchange).fields
    code, amount = fields.get("currency"), fields.get("amount")
    if isinstance(amount, bool) or not isinstance(amount, (int, Decimal)) or not 0 < amount <= _MOST:
        return None
    number = plain(amount)
    known = isinstance(code, str) and is_currency(code) and int(number.as_tuple().exponent) >= -DECIMALS
    return (str(code), number) if known else None


def _record(change: Change, record: PayoutRecord | PaymentRecord) -> LoggedFailure:
    attempts: Sequence[AttemptRecord] = record.attempts if isinstance(record, PaymentRecord) else ()
    attempt = next((one for one in attempts if one.id == change.id), None)
    failure = attempt.failure if attempt else getattr(record, "failure", None)
    why = f"{failure.code}: {failure.message}" if failure else change.after
    is_payout = change.kind == "payout"
    every = f"payouts?failure={failure.code}" if is_payout and failure else "?find=is:failed+is:record"
    return LoggedFailure(
        f"{change.kind} {why}",
        change.after,
        tone(change.after),
        _FIXES["payout" if is_payout else "attempt"],
        change.at,
        record.reference or record.id,
        page_of(record.id),
        f"{CONSOLE}{every}",
        (record.currency, record.amount),
    )
