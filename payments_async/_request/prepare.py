"""Makes calls from arguments, checks them before anything is sent, and makes their HTTP requests.

A call's bytes and idempotency key are made here, once; every attempt sends the same. Pure, but for a write's
time and key, which its `Runtime` gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import _assumptions
from .._codec import encode
from .._emitter import warn_caller
from .._http.addresses import same_service
from .._http.types import CommonHeaders, HTTPRequest
from .._runtime import Runtime
from .._validation import rules, tables
from ..errors import InvalidRequest, PaymentsError, ResponseMismatch
from ..models import Record
from ..params import Params, PreparedRequest, operations
from ..params.operations import Limit, Operation
from .auth import SecretKey
from .call import Call
from .settings import Settings, count, positive

Errors = dict[str, list[str]]


def reading(
    operation: Operation[Any],
    options: Mapping[str, Any],
    ids: Mapping[str, str] | None = None,
    query: Mapping[str, Any] | None = None,
    errors: Errors | None = None,
    record: str | None = None,
) -> Call:
    """Make the call of a GET. Raises InvalidRequest with every fault of its arguments."""
    refuse_unknown(options, READ_OPTIONS, operation.name)
    faults = {**(errors or {}), **_option_problems(options), **operations.id_problems(ids or {})}
    if faults:
        raise InvalidRequest(faults, operation=operation.name)
    path = operations.path_with(
        operation.path_for(ids), {**(query or {}), **(options.get("extra_query") or {})}
    )
    named = ids[operation.record] if ids and operation.record else record
    call = Call(operation, path, options.get("extra_headers") or {}, named)
    call.limit(options)
    return call


def writing(
    prepared: PreparedRequest,
    options: Mapping[str, Any],
    *,
    operation: Operation[Any],
    key: SecretKey | None = None,
) -> Call:
    """Make the call of a prepared write. Raises InvalidRequest for unusable options."""
    if faults := _option_problems(options):
        raise InvalidRequest(faults, operation=operation.name)
    path, headers, own_key = prepared.path, prepared.headers, prepared.idempotency_key
    call = Call(operation, path, headers, None, prepared, None, prepared.body, own_key, key)
    call.limit(options)
    return call


def with_params(
    operation: Operation[Any], json: object, params: Any, options: Mapping[str, Any]
) -> dict[str, Any]:
    """The options of a `client.request`, including its `params`. Raises InvalidRequest."""
    refuse_unknown(options, WRITE_OPTIONS if operation.writes else READ_OPTIONS, "request")
    params, extra = {} if params is None else params, options.get("extra_query") or {}
    queries = {"params": params, "extra_query": extra}
    faults = {name: [p] for name, value in queries.items() if (p := rules.query(value))}
    does_not_go = None if operation.writes else "does not go with a GET: use params="
    if json is not None and (problem := does_not_go or rules.json_object(json)):
        faults["json"] = [problem]
    if faults:
        raise InvalidRequest(faults, operation=operation.name)
    return {**options, "extra_query": {**params, **extra}}


SEND_OPTIONS = frozenset({"timeout", "deadline", "max_retries"})
READ_OPTIONS = SEND_OPTIONS | {"extra_headers", "extra_query"}
_KEY_HEADER = "X-Idempotency-Key"
WRITE_OPTIONS = READ_OPTIONS | {"idempotency_key", "extra_body"}
PREPARE_OPTIONS = WRITE_OPTIONS - SEND_OPTIONS
_WRITTEN = ("extra_body", "extra_query", "extra_headers")
"""Options that become part of a write's request, besides its key."""
_NOTHING: tuple[Any, ...] = (None,) * len(_WRITTEN)


def unlisted(
    method: object, path: object, result: type[Any] | None, limit: Limit | None
) -> tuple[Operation[Any], str | None]:
    """The operation of a `client.request`, and the id for a per-record limit. Raises InvalidRequest."""
    faults: dict[str, list[str]] = {}
    if not isinstance(method, str) or method not in operations.METHODS:
        faults["method"] = [f"must be one of {', '.join(operations.METHODS)}"]
    if not isinstance(path, str) or not operations.is_safe_path(path):
        faults["path"] = [
            "must start with a slash and hold plain segments: encode what is special, use params= for a query"
        ]
    if limit not in (None, "write", "read", "diagnostic", "refund_availability"):
        faults["limit"] = ["must be write, read, diagnostic or refund_availability"]
    if result is not None and not (isinstance(result, type) and issubclass(result, Record)):
        faults["result"] = ["must be a record class of payments_async.models"]
    if faults:
        raise InvalidRequest(faults, operation="request")
    listed, record = operations.record_of(str(method), str(path))
    operation = operations.custom(str(method), str(path), result)
    return operation.changed(limit=limit or (listed.limit if listed else None)), record


def split(arguments: Mapping[str, Any], options: frozenset[str]) -> tuple[Any, dict[str, Any]]:
    """Split keyword arguments into (fields of the request, options)."""
    if options.isdisjoint(arguments):
        return arguments, {}
    own = {**arguments}
    return own, {name: own.pop(name) for name in options if name in own}


def refuse_unknown(arguments: Mapping[str, Any], known: frozenset[str], method: str) -> None:
    """Raise TypeError for an unknown keyword argument; the message suggests the nearest known one."""
    if known.issuperset(arguments):
        return
    name = min(arguments.keys() - known)
    advice = ": it belongs to the sending" if name in SEND_OPTIONS else rules.suggestion(name, known)
    raise TypeError(f"{method}() got an unexpected keyword argument {name!r}{advice}")


def prepare(
    operation: Operation[Any],
    request: Params | Mapping[str, Any] | None,
    options: Mapping[str, Any],
    *,
    base_url: str,
    key: SecretKey,
    runtime: Runtime,
    path: str | None = None,
    record: str | None = None,
) -> Call:
    """Make the call of a write, with its exact bytes and idempotency key, for an address and a secret key.

    The key is drawn from the system now: a copy of the process must not have it in its memory.
    Raises InvalidRequest with every fault at once; nothing is sent.
    """
    errors, doubt = _option_problems(options) if options else {}, None
    now = runtime.now()
    own_key = "" if errors else options.get("idempotency_key") or runtime.token(16).hex()
    # From here on locals have account data, and nothing is raised while they have: tracebacks print them.
    body = encode.checked_body(request, now) if isinstance(request, Params) and not errors else None
    if body is None and isinstance(request, Params):
        errors = {**tables.check(request, now=now), **errors}
        for doubt in () if errors else tables.doubts(request):
            warn_caller(f"{operation.name}: {doubt}")
        doubt = None if errors else tables.amount_doubt(request)
    if errors:
        raise InvalidRequest(errors, operation=operation.name)
    extra, query, headers = map(options.get, _WRITTEN) if options else _NOTHING
    headers, path = dict(headers) if headers else {}, path or operation.path
    path = operations.path_with(path, query) if query else path
    if body is None or extra:
        body = None
        body = _bytes(operation, request, extra)
    made = (operation.name, path, body, own_key, now, base_url, key.environment, key.fingerprint)
    made_from = (*made, _reference(operation, request, extra), headers)
    compared = request if isinstance(request, Params) and not extra else None
    call = Call(operation, path, headers, record, made_from, compared, body, own_key, key)
    call.doubt = doubt
    if options:
        call.limit(options)
    return call


def key_problem(key: object) -> str | None:
    """The fault of an idempotency key that a caller gave, or None (Limits, Idempotency)."""
    if not isinstance(key, str):
        return f"must be text, not {type(key).__name__}"
    if not 8 <= len(key) <= 128:
        return f"has {len(key)} characters, 8 to 128 are allowed"
    plain = key.isascii() and key.isprintable() and " " not in (key[0], key[-1])
    return None if plain else "may hold only printable ASCII, with no space at either end"


def _seconds_problem(value: object) -> str | None:
    return None if positive(value) else "must be a positive number of seconds"


_OPTION_RULES: Mapping[str, rules.Rule] = {
    "idempotency_key": key_problem,
    "extra_body": rules.json_object,
    "extra_headers": rules.headers,
    "extra_query": rules.query,
    "timeout": _seconds_problem,
    "deadline": _seconds_problem,
    "max_retries": lambda value: None if count(value) else "must be a whole number, 0 or more",
}


def _option_problems(options: Mapping[str, Any]) -> Errors:
    """The faults of a call's options; None stands for one that was not given."""
    given = [(name, value) for name, value in options.items() if value is not None]
    return {name: [problem] for name, value in given if (problem := _OPTION_RULES[name](value))}


def _reference(
    operation: Operation[Any], request: Params | Mapping[str, Any] | None, extra: Mapping[str, Any] | None
) -> str | None:
    """The reference in a payout's bytes, whichever argument it came from."""
    if operation.path != "/payouts" or operation.method != "POST":
        return None
    if extra and "reference" in extra:
        reference = extra["reference"]
    elif isinstance(request, Params):
        reference = getattr(request, "reference", None)
    else:
        reference = request.get("reference") if request else None
    return reference if isinstance(reference, str) else None


def _bytes(
    operation: Operation[Any], request: Params | Mapping[str, Any] | None, extra: Mapping[str, Any] | None
) -> bytes:
    try:
        if isinstance(request, Params):
            return encode.encode(request, extra)
        return encode.encode_json({**(request or {}), **(extra or {})})
    except encode.Unwritable as error:
        problem = str(error)
    raise InvalidRequest({"body": [problem]}, operation=operation.name)


def make_request(call: Call, settings: Settings, key: SecretKey, now: float) -> HTTPRequest:
    """Make the request of one attempt, with at most the time that is left (monotonic seconds)."""
    timeout = call.timeout or settings.timeout
    if call.ends is not None:
        timeout = min(timeout, max(call.ends - now, 0.001))
    agent = settings.user_agent
    reads, writes = key.common.get(agent) or key.common.setdefault(agent, _common(key, agent))
    own = call.idempotency_key
    common = reads if own is None else writes
    url, may_send = settings.base_url + call.path, call.may_send
    method, body = call.operation.method, call.body
    request = HTTPRequest(method, url, None, body, timeout, may_send, common, own or "")
    if call.headers:  # the caller's replace ours of the same name, whatever their case
        theirs = {name.lower() for name in call.headers}
        ours = {name: value for name, value in request.headers.items() if name.lower() not in theirs}
        request.headers = {**ours, **call.headers}
    return request


def is_sent(request: HTTPRequest | None) -> bool:
    """Return whether any byte of a request may have been sent; None stands for a request never made."""
    return request is not None and request.sent


def refuse_connection(request: HTTPRequest | None, error: PaymentsError) -> None:
    """Close a connection that gave another call's answer: its next answer may be wrong, too."""
    if isinstance(error, ResponseMismatch) and request is not None and request.connection is not None:
        request.connection.abort()


def _common(key: SecretKey, user_agent: str) -> tuple[CommonHeaders, CommonHeaders]:
    headers = {"Authorization": key.authorization, "User-Agent": user_agent, "Accept": "application/json"}
    written = {"Accept-Encoding": "identity", "Content-Type": "application/json"}
    reads = CommonHeaders({**headers, "Accept-Encoding": "gzip"}, None)
    return reads, CommonHeaders({**headers, **written}, _KEY_HEADER)


def foreign(prepared: PreparedRequest, base_url: str, key: SecretKey) -> str | None:
    """The reason not to send a prepared request to this address or environment; None to send it."""
    if prepared.base_url != base_url and not same_service(prepared.base_url, base_url):
        return f"this request was prepared for {prepared.base_url}; this client talks to another address"
    if prepared.environment != key.environment:
        return f"this request was prepared for {prepared.environment}, the key is a {key.environment} key"
    return None


def unprotected(prepared: PreparedRequest, age: float, *, same_key: bool) -> str | None:
    """The reason why a request of this age may be carried out twice if sent now; None when it cannot."""
    if not same_key and prepared.base_url.startswith("http:"):  # plain http goes to sandboxes alone
        return (
            "this request was prepared under the key of another sandbox, or of this one before it was "
            "started anew: what it made is gone; prepare it anew"
        )
    if not same_key:
        return (
            "this request was prepared under another secret key; if that key was rotated within its "
            "project, send it with rotated_key=True"
        )
    if prepared.reference is None and age >= _assumptions.KEY_TRUSTED_FOR:
        return (
            "this request was prepared over 23 hours ago, and its key may protect it no longer: "
            "prepare it anew if it was never sent, else look for its record"
        )
    return None
