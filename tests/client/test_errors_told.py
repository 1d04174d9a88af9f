"""What an error is, says to do next and says of money: each failure, each status there is (Errors; gap Q)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any, NoReturn

import aiohttp
import pytest

from payments_async import APIConnectionError, errors
from payments_async.errors import (
    APIStatusError,
    ConflictError,
    DuplicateReference,
    IdempotencyConflict,
    OutcomeUnknown,
    RateLimitedError,
    ServerError,
)
from payments_async.sandbox import Sandbox
from tests.conftest import KEY
from tests.support import bodies
from tests.support.calls import CREATES, OPERATIONS, call
from tests.support.creations import create, row
from tests.support.scripted import ScriptedTransport, answer, lost, unsent
from tests.support.surfaces import Connect, error_of

ONE = {"max_retries": 0}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        *(("dns", "host"), ("connect", "network"), ("tls", "certificates"), ("pool", "max_connections")),
        *(("timeout", "longer timeout"), ("reset", "try again later"), ("protocol", "is the service's")),
    ],
)
async def test_no_answer_says_what_happened_and_what_to_check(connect: Connect, kind: str, step: str) -> None:
    never = connect(transport=ScriptedTransport(unsent(kind)))
    message = str(await error_of(errors.APIConnectionError, create(never, "payouts", **ONE)))
    assert f"no answer from 127.0.0.1:9 ({kind}: " in message
    assert "; nothing was sent: " in message
    assert step in message
    assert ("is `payments sandbox` running?" in message) is (kind == "connect"), "plain http is this machine"
    read = connect(transport=ScriptedTransport(lost(kind)))
    await error_of(errors.APIConnectionError, read.payouts.list(**ONE), match="; nothing can have happened: ")


async def test_an_answer_that_is_too_large_says_what_to_check(connect: Connect) -> None:
    read = connect(transport=ScriptedTransport(lost("too_large")))
    await error_of(errors.DecodeError, read.payouts.list(), match="ask for less")


@pytest.mark.parametrize(
    ("resource", "data", "where"),
    [
        ("payouts", {"id": "po_1", "status": 7}, "find it by its reference, or in the list"),
        ("payment_intents", {"id": "pi_1", "amount": {"value": True}}, "find it in the list"),
        ("checkouts", {"checkout": {"id": "cs_1", "url": 7}}, "read it by its id"),
    ],
)
async def test_where_an_unreadable_record_is(connect: Connect, resource: str, data: Any, where: str) -> None:
    client = connect(transport=ScriptedTransport(answer(201, {"data": data})))
    caught = await error_of(errors.DecodeError, create(client, resource))
    assert "HTTP 201, but the answer cannot be used (" in str(caught)
    assert str(caught).endswith(f"; the record exists: {where}")
    assert (caught.effect, caught.record_id) == ("happened", data.get("id", "cs_1"))
    assert caught.attempts[-1].verdict == "executed"


HERE = "/".join(Path(__file__).parts[-2:])


def raising(monkeypatch: pytest.MonkeyPatch, made: Callable[[], Exception]) -> None:
    """Replace aiohttp's sending, as stand-ins and agents do, by one that raises."""

    async def broken(*_: object, **__: object) -> NoReturn:
        try:
            raise LookupError(KEY)
        except LookupError:
            raise made()  # noqa: B904 - what was raised before it must not be shown

    monkeypatch.setattr(aiohttp.ClientSession, "_request", broken)


@pytest.mark.parametrize(
    "raised",
    [TypeError("takes 2 arguments"), aiohttp.ClientConnectionError("no match: POST /payouts")],
    ids=["agent", "stand-in"],
)
async def test_the_class_the_place_and_the_text_are_in_both_errors_and_the_original_is_the_cause(
    raised: Exception, connect: Connect, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    raising(monkeypatch, lambda: raised)
    caught = await error_of(OutcomeUnknown, create(connect(sandbox, max_retries=0), "payouts"))
    cause = caught.__cause__
    assert isinstance(cause, APIConnectionError)
    assert (cause.kind, [each.reason for each in caught.attempts]) == ("unexpected", ["unexpected"])
    for error in (caught, cause):
        assert f"{type(raised).__name__}: {raised}, raised at {HERE}:" in str(error)
    assert cause.__cause__ is raised
    assert (raised.__traceback__, raised.__cause__, raised.__context__) == (None, None, None)


@pytest.mark.parametrize("text", [f"with {KEY}", "for +233200000001"], ids=["key", "account"])
async def test_a_text_with_a_secret_is_masked_and_its_exception_left_out(
    text: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, sandbox: Sandbox
) -> None:
    raising(monkeypatch, lambda: TypeError(text))
    caught = await error_of(
        OutcomeUnknown, create(connect(sandbox, max_retries=0), "payouts"), match=r"TypeError: \w+ .*\*\*\*"
    )
    assert text.split()[1] not in f"{caught} {caught.__cause__}"
    assert caught.__cause__ is not None
    assert caught.__cause__.__cause__ is None


BODY = {"message": "No.", "errors": {"amount": ["too small"]}}
NAMED = {400: "BadRequestError", 401: "AuthenticationError", 403: "PermissionDeniedError"}
NAMED |= {404: "NotFoundError", 409: "ConflictError", 422: "UnprocessableError", 429: "RateLimitedError"}
ALL = [*range(300, 600), 600, 799, 999]


one_surface = pytest.mark.parametrize("surface", ["async"], indirect=True)
"""The mirror reads no status itself."""


def expected(status: int) -> type[APIStatusError]:
    if status >= 500:
        return ServerError
    found: type[APIStatusError] = getattr(errors, NAMED.get(status, "APIStatusError"))
    return found


@one_surface
@pytest.mark.parametrize("operation", ["payouts.sync", "payment_intents.requery"])
async def test_a_refused_read_did_nothing_and_says_its_status(connect: Connect, operation: str) -> None:
    for status in ALL:
        caught = await error_of(APIStatusError, call(connect, operation, BODY, status))
        assert type(caught) is expected(status), status
        assert (caught.status, caught.effect) == (status, "none")
        assert (caught.message, caught.errors) == ("No.", {"amount": ["too small"]})
        refused = 400 <= status < 500 and status != 408
        assert caught.attempts[-1].verdict == ("not_executed" if refused else "in_doubt")


@one_surface
async def test_only_a_clear_4xx_says_that_nothing_was_made(connect: Connect) -> None:
    for status, operation in zip(ALL, cycle(CREATES), strict=False):
        caught = await error_of((APIStatusError, OutcomeUnknown), call(connect, operation, BODY, status))
        error, is_certain = caught, 400 <= status < 500 and status not in (408, 409)
        refusal = error if is_certain else error.__cause__
        if status != 409:
            assert type(refusal) is expected(status), status
            assert error.effect == ("none" if is_certain else "unknown")
            assert error.attempts[-1].verdict == ("not_executed" if is_certain else "in_doubt")


IN_PROGRESS = (
    "The request is in progress.",
    "This payout is being processed, try again later.",
    "CONCURRENT request.",
    "Transaction in-progress.",
    "Still being  processed;\ttry later.",
    "This payout is currently processing.",
    "Request already running.",
    "The reference is locked by a concurrent request.",
)
KEY_IN_PROGRESS = "The request with this idempotency key is still being worked on."


@one_surface
@pytest.mark.parametrize(
    ("operation", "message", "cls", "effect"),
    [
        ("payouts.create", "The reference has already been taken.", DuplicateReference, "none"),
        ("payouts.create", None, DuplicateReference, "none"),
        ("payouts.create", "", DuplicateReference, "none"),
        ("payouts.create", "Conflict.", DuplicateReference, "none"),
        ("payouts.create", "This KEY belongs to another body.", IdempotencyConflict, "unknown"),
        ("payouts.create", "Idempotency key reused.", IdempotencyConflict, "unknown"),
        ("payouts.create", "A request with this IDEMPOTENT key runs.", IdempotencyConflict, "unknown"),
        ("payouts.create", "The reference exists; its payout is in progress.", DuplicateReference, "none"),
        ("payouts.create", "This reference is taken by a concurrent request.", DuplicateReference, "none"),
        ("payment_intents.create", "Conflict.", ConflictError, "unknown"),
        ("checkouts.create", "Key of idempotency.", IdempotencyConflict, "unknown"),
        ("payouts.sync", "Busy.", ConflictError, "none"),
        *(("payouts.create", message, ConflictError, "unknown") for message in IN_PROGRESS),
        ("payouts.create", KEY_IN_PROGRESS, IdempotencyConflict, "unknown"),
        *((operation, IN_PROGRESS[0], ConflictError, "unknown") for operation in CREATES[:2]),
    ],
)
async def test_conflicts_are_distinguished(
    connect: Connect, operation: str, message: str | None, cls: type[ConflictError], effect: str
) -> None:
    transport = ScriptedTransport(answer(409, {"message": message}))
    client = connect(transport=transport, max_retries=5)
    caught = await error_of((ConflictError, OutcomeUnknown), OPERATIONS[operation].call(client))
    is_open = message in (*IN_PROGRESS, KEY_IN_PROGRESS)  # its outcome is still to come
    assert isinstance(caught, OutcomeUnknown) is is_open
    assert type(caught.__cause__ if is_open else caught) is cls
    assert (caught.effect, len(transport.requests)) == (effect, 1)
    is_proof = effect == "none"
    assert [each.verdict for each in caught.attempts] == ["not_executed" if is_proof else "in_doubt"]


HTML = b"<html><h1>Bad Gateway</h1></html>"


@one_surface
@pytest.mark.parametrize(
    ("status", "body"),
    [
        *zip(
            cycle([400, 401, 404, 409, 422, 429, 500, 502]),
            [b"", HTML, b"null", b"[1]", b'"No."', b"{", b'{"message": 7}', b'{"errors": 7}', b"\xff"],
            strict=False,
        )
    ],
)
async def test_a_refusal_without_a_readable_body_is_one(connect: Connect, status: int, body: bytes) -> None:
    caught = await error_of(APIStatusError, call(connect, "payouts.sync", body, status))
    assert type(caught) is expected(status)
    assert caught.message is None
    assert caught.body is not None
    assert caught.body.raw == body


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        row(400, "the request is malformed"),
        row(401, "rotate", facts="error.401"),
        row(403, "allowlist", facts="error.403"),
        row(404, "no such path or record: check the base URL", facts="error.404"),
        row(409, "client.resolve(error) returns it if it is the one asked for"),
        row(422, "new idempotency key", facts="error.422"),
        row(428, "the idempotency key was refused"),
        row(429, "over the rate limit: wait 7 s", facts="error.429"),
    ],
)
async def test_a_refusal_says_what_to_do_about_it(connect: Connect, status: int, hint: str) -> None:
    headers = {"Retry_After": "7"} if status == 429 else {}
    caught = await error_of(APIStatusError, call(connect, "payouts.create", BODY, status, **headers))
    text = str(caught)
    assert hint in text
    assert "payouts.create" in text
    assert "; No" in text  # the sentence of the service, without its full stop
    assert "amount: too small" in text
    assert caught.message == "No."


@pytest.mark.parametrize(
    ("status", "hint"), [(404, "no such record: check the id"), (422, "correct the fields")]
)
async def test_a_refused_read_speaks_of_no_key(connect: Connect, status: int, hint: str) -> None:
    caught = await error_of(APIStatusError, call(connect, "payouts.list", BODY, status), match=hint)
    assert "idempotency" not in str(caught)


@one_surface
@pytest.mark.parametrize("replayed", ["false", "1", "yes", "", "truе"])
async def test_only_true_means_replayed(connect: Connect, replayed: str) -> None:
    body = OPERATIONS["payouts.create"].body
    payout = await call(connect, "payouts.create", body, X_Idempotent_Replayed=replayed)
    assert not payout.response.replayed


@one_surface
async def test_headers_of_an_error_are_kept_and_stay_out_of_its_text(connect: Connect) -> None:
    headers = {"X_Request_Id": "req-9", "X_Payer": bodies.EMAIL, "X_RateLimit_Limit": "٣"}
    caught = await error_of(
        RateLimitedError, call(connect, "payouts.sync", {"message": "No."}, 429, **headers)
    )
    assert caught.request_id == "req-9"
    assert caught.headers["x-payer"] == bodies.EMAIL
    assert caught.limit is None
    assert bodies.EMAIL not in f"{caught!r} {caught}"
