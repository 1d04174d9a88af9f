"""Decides the verdict on one attempt from its answer or failure. Pure (Errors; gaps E, P, Q, S)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from traceback import format_exception_only
from typing import Any, Final

from .. import _assumptions, models
from .._codec import decode
from .._http.addresses import host_and_port
from .._http.types import HTTPResponse, TransportError
from ..errors import APIConnectionError, APIStatusError, APITimeoutError, DecodeError, ResponseMismatch
from ..models import Payout, Verdict
from ..models._response import is_replayed
from ..params.operations import Operation
from . import error_responses
from .call import AttemptResult, Call
from .comparison import agrees, is_checkout, mismatch

_FINAL: Final = frozenset({"tls", "closed", "withheld"})
"""Failures that another attempt would repeat, or that the caller caused."""


def read_failure(call: Call, failure: TransportError, *, sent: bool, url: str = "") -> AttemptResult:
    """Make the result of an attempt without an answer. `url`: where it was to go, if anywhere."""
    verdict: Verdict = "in_doubt" if sent else "not_sent"
    if failure.kind == "too_large":
        advice = "check that the base URL is the service's, or ask for less"
        text = f"{call.operation.name}: {failure.detail}; {advice}"
        large = DecodeError(text, record_id=None, body=b"", operation=call.operation.name)
        return AttemptResult(verdict, failure.kind, error=large)
    cls = APITimeoutError if failure.kind == "timeout" else APIConnectionError
    source = f" from {host_and_port(url)}" if url else ""
    words, original = _explained(call, failure)
    if failure.kind == "connect" and url.startswith("http:"):  # plain http goes to sandboxes alone
        words = f"{words}; is `payments sandbox` running?"
    error = cls(
        f"{call.operation.name}: no answer{source} ({failure.kind}: {words})",
        kind=failure.kind,
        detail=words,
        operation=call.operation.name,
    )
    error.__cause__ = original
    return AttemptResult(verdict, failure.kind, error=error, again=failure.kind not in _FINAL)


def _explained(call: Call, failure: TransportError) -> tuple[str, Exception | None]:
    """The words of a failure, and the exception behind it unless its text had to be masked."""
    original = failure.original
    if original is None:
        return failure.detail, None
    text = "".join(format_exception_only(original)).strip()
    masked = error_responses.masking(call)(text)
    return f"{masked}, {failure.detail}", original if masked == text else None


def read_answer(call: Call, answer: HTTPResponse, now: Callable[[], datetime]) -> AttemptResult:
    """Make the result of an attempt with an answer."""
    if 200 <= answer.status < 300:
        return _read_success(call, answer)
    replayed = is_replayed(answer.headers)
    error = error_responses.status_error(call, answer, now())
    passes = answer.status >= 500 and answer.status not in _assumptions.NEVER_RETRIED  # gap Q
    return AttemptResult(
        _refusal_verdict(answer.status, error, replayed=replayed),
        str(answer.status),
        answer.status,
        error=error,
        again=(passes or answer.status == 429) and not replayed,
        retry_after=getattr(error, "retry_after", None),
    )


def _refusal_verdict(status: int, error: APIStatusError, *, replayed: bool) -> Verdict:
    """The verdict on a refusal: only a definite 4xx proves that nothing was done, unless it is replayed."""
    if not error_responses.is_definite(status) or (replayed and status in (409, 429)):
        return "in_doubt"
    return "in_doubt" if error.effect == "unknown" else "not_executed"


def _read_success(call: Call, answer: HTTPResponse) -> AttemptResult:
    operation = call.operation
    if not answer.body and operation.result is None:
        return AttemptResult("executed", str(answer.status), answer.status, headers=answer.headers)
    if (expected := _as_expected(operation, answer.body)) is not None:
        value, message = expected
        return _done(call, answer, value, message)
    record_id: str | None = None
    try:
        if operation.result is not None and decode.has_too_many_records(answer.body):
            raise decode.UnreadableJSON(decode.TOO_MANY_RECORDS)
        tree = decode.parse_answer(answer.body)
        record_id = _record_id(tree, call)
        value = _value(call, tree)
        problem = _missing(value) if operation.creates else None
    except decode.UnreadableJSON as unreadable:
        problem = str(unreadable)
    if problem is None:
        return _done(call, answer, value, tree.get("message") if operation.shape != "raw" else None)
    return _unreadable(call, answer, record_id, problem)


def _missing(value: Any) -> str | None:
    """Return what the answer of a creation lacks: the record's id, or a checkout's address."""
    if not getattr(value, "id", "none"):
        return "a record without its id"
    return "a checkout without its url" if is_checkout(value) and not value.url else None


def _as_expected(operation: Operation[Any], body: bytes) -> tuple[Any, Any] | None:
    """Read the record and the message of a usual answer; None for one that needs the slow path."""
    result, shape = operation.result, operation.shape
    if result is None or shape == "raw" or shape == "method_status":
        return None
    page = shape == "page"
    found = decode.usual_answer(body, result, page=page)
    if found is None or (operation.creates and not getattr(found.data, "id", "none")):
        return None
    if not page:
        return found.data, found.message
    stands = found.pagination or models.Pagination()
    if stands.has_more_pages is None and stands.next_cursor is None:
        return None  # a cursor of null differs from a missing one: the slow path distinguishes them
    return models.Page(found.data, stands), found.message


def _done(call: Call, answer: HTTPResponse, value: Any, message: Any) -> AttemptResult:
    """Make the result of a success, after checking that the record is the one asked for."""
    operation = call.operation
    error: ResponseMismatch | None = None
    if operation.echo is not None:
        error = _other_record(call, operation.echo, value)
    elif operation.creates and not agrees(value, call.request) and operation.result is not None:
        prepared = call.prepared
        assert prepared is not None
        error = mismatch(prepared, value)
    verdict: Verdict = "in_doubt" if error and operation.creates else "executed"
    text = message if isinstance(message, str) else None
    status, headers = answer.status, answer.headers
    return AttemptResult(verdict, str(status), status, value, text, error, headers, answer.body)


def _other_record(call: Call, echo: str, value: Any) -> ResponseMismatch | None:
    """Make an error if the answer is about another record than the one asked for; else None."""
    found = getattr(value, echo)
    if not found or found == call.record:
        return None
    return ResponseMismatch(
        f"{call.operation.name}: the service answered about another record ({echo} differs); nothing is "
        "known of the one asked for, and the connection was closed: read it again",
        record=value,
        differences={echo: (str(call.record), found)},
        operation=call.operation.name,
        effect="none",
    )


def _unreadable(call: Call, answer: HTTPResponse, record_id: str | None, problem: str) -> AttemptResult:
    """Make the result of an unreadable 2xx. A write without its record's id is retried with the same key."""
    confirmed = call.operation.writes and record_id is not None
    happened = confirmed and call.operation.creates
    error = DecodeError(
        f"{call.operation.name}: HTTP {answer.status}, but the answer cannot be used ({problem})"
        + (f"; the record exists: {_where(call)}" if happened else ""),
        record_id=record_id,
        body=answer.body,
        operation=call.operation.name,
        effect="happened" if happened else "none",
    )
    verdict: Verdict = "in_doubt" if call.operation.writes and not confirmed else "executed"
    again = verdict == "in_doubt"
    return AttemptResult(
        verdict, "unreadable", answer.status, error=error, headers=answer.headers, again=again
    )


def _where(call: Call) -> str:
    """Advice for finding the record; the interface has no reading of a single payout or payment."""
    if call.operation.result is Payout:
        return "find it by its reference, or in the list"
    return "find it in the list" if call.operation.result is models.PaymentIntent else "read it by its id"


def _record_id(tree: Any, call: Call) -> str | None:
    """Find the id of the record in a body, even when the record cannot be read.

    None for a record with another reference than the one asked for.
    """
    operation, asked = call.operation, call.prepared.reference if call.prepared else None
    data = tree.get("data", tree if operation.shape == "raw" else None) if isinstance(tree, dict) else None
    if operation.result is models.Checkout and isinstance(data, dict):
        data = data.get("checkout")
    if asked is not None and isinstance(data, dict) and data.get("reference") not in (None, asked):
        return None
    return _id_in(data)


def _id_in(record: Any) -> str | None:
    found = record.get("id") if isinstance(record, dict) else None
    return found if found.__class__ is str and found else None


def _value(call: Call, tree: Any) -> Any:
    """Read the record in a body. Raises UnreadableJSON."""
    operation = call.operation
    if not isinstance(tree, dict) and operation.shape != "raw":
        raise decode.UnreadableJSON("not a JSON object")
    if operation.shape == "raw":
        return _raw(call, tree)
    data = tree.get("data")
    result: type[Any] = operation.result or models.Checkout
    if operation.shape == "page":
        return _page(result, data, tree.get("pagination"))
    if not isinstance(data, dict):
        raise decode.UnreadableJSON("without its data")
    if operation.shape == "method_status":
        meta = tree.get("meta")
        data = {**(meta if isinstance(meta, dict) else {}), **data}
    return decode.structure(data, result)


def _raw(call: Call, tree: Any) -> Any:
    if call.operation.result is None:
        if call.operation.writes and not isinstance(tree, dict):
            raise decode.UnreadableJSON("not a JSON object")
        return tree
    data = tree.get("data", tree) if isinstance(tree, dict) else tree
    if isinstance(data, list):
        pagination = tree.get("pagination") if isinstance(tree, dict) else None
        return _page(call.operation.result, data, pagination)
    return decode.structure(data, call.operation.result)


def _page(cls: type[Any], data: Any, pagination: Any) -> models.Page[Any]:
    """Read a page; a record that cannot be read goes to `unread`, and the others are kept."""
    if not isinstance(data, list):
        raise decode.UnreadableJSON("without its list")
    if len(data) > decode.MAX_RECORDS:
        raise decode.UnreadableJSON(decode.TOO_MANY_RECORDS)
    items, unread = [], []
    for index, item in enumerate(data):
        try:
            items.append(_listed(decode.structure(item, cls)))
        except decode.UnreadableJSON as problem:
            unread.append(models.Unread(index, str(problem), _id_in(item), item))
    stands = decode.structure(pagination, models.Pagination) if pagination else models.Pagination()
    names_next = "next_cursor" in (pagination or ())
    is_last = models.lists.proves_end(stands, is_empty=not data, names_next=names_next)
    return models.Page(tuple(items), stands, unread=tuple(unread), is_last=is_last)


def _listed(record: Any) -> Any:
    """A record of a list. Raises UnreadableJSON for one without its id."""
    if getattr(record, "id", None) == "":
        raise decode.UnreadableJSON(f"{type(record).__name__}.id should be set")
    return record
