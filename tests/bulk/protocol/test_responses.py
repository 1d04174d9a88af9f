"""Answers as the client reads them, in the protocol's terms: the client's verdict, and what follows."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from payments_async._request.call import AttemptResult
from payments_async._request.error_responses import status_error
from payments_async._request.outcome import read_answer
from payments_async.bulk._protocol.attempts import AttemptReply, Step, after_attempt
from payments_async.bulk._protocol.exit_codes import Stop
from payments_async.bulk._protocol.responses import Posted, failed, refuses_access, stop_of, succeeded, why
from payments_async.bulk.errors import access_problem
from payments_async.errors import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    DeadlineExceeded,
    DecodeError,
    NotFoundError,
    OutcomeUnknown,
    PaymentsError,
    PermissionDeniedError,
    RateLimitedError,
    ServerError,
)
from payments_async.models import Attempt, Payout, Verdict
from payments_async.models.statuses import PayoutEnd
from tests.simulation.service import client_verdict
from tests.support.motion import REPLAYED
from tests.support.pure_calls import BODY, NOW, PAYOUT, begun, prepared
from tests.support.scripted import answer

ASKED = json.loads(BODY)
RECORD = {"id": "po_1", "reference": ASKED["reference"], "amount": {"value": 10.1, "currency": "XOF"}}
RECORDS: dict[str, tuple[Any, Step]] = {
    "the payout": ({"data": RECORD}, Step.CONFIRM),
    "another amount": ({"data": {**RECORD, "amount": {"value": 7, "currency": "XOF"}}}, Step.RESOLVE),
    "an odd field": ({"data": {**RECORD, "amount": 7}}, Step.CONFIRM),
    "an odd field of another": ({"data": {**RECORD, "amount": 7, "reference": "r-2"}}, Step.AGAIN),
    "no id": ({"data": {**RECORD, "id": None}}, Step.AGAIN),
    "no object": ([], Step.AGAIN),
    "HTML": (b"<html>", Step.AGAIN),
    "nothing": (b"", Step.AGAIN),
}
"""{what a 2xx carries: its body, what follows}."""
REFUSALS = {
    "taken": {"message": "The reference has already been taken."},
    "at work": {"message": "The request is being processed."},
    "other key": {"message": "The idempotency key belongs to another body."},
    "HTML": b"<html>",
}
"""What a 409 may say, and any other error."""
STEPS: dict[int, tuple[Step, Step]] = {
    **dict.fromkeys((100, 408, 500, 501, 503, 599, 600), (Step.AGAIN, Step.RESOLVE)),
    **dict.fromkeys((400, 402, 413, 422, 428, 451), (Step.REJECT, Step.REJECT)),
    **dict.fromkeys((401, 403), (Step.HALT_CREDENTIALS, Step.RESOLVE)),
    **dict.fromkeys((404, 405, 407, 421), (Step.HALT_ADDRESS, Step.RESOLVE)),
    **dict.fromkeys((301, 302, 308), (Step.HALT_ADDRESS, Step.HALT_ADDRESS)),
    409: (Step.RESOLVE, Step.RESOLVE),
    429: (Step.PAUSE, Step.RESOLVE),
}
"""{status: what follows the answer, and what follows it when it is a replay}."""
EARLIER: tuple[Verdict | None, ...] = (None, "not_sent", "not_executed", "in_doubt")


def posted(status: int, body: Any, *, replayed: bool, earlier: Verdict | None) -> tuple[Posted, Verdict]:
    """One post whose last attempt had this answer, and the client's verdict on that attempt."""
    call = begun(PAYOUT)
    if earlier is not None:
        call.note(AttemptResult(earlier, "timeout"), 0.0, 0.0)
    result = read_answer(PAYOUT, answer(status, body, REPLAYED if replayed else None), lambda: NOW)
    call.note(result, 0.0, 0.0)
    if result.error is None:
        return succeeded(call.delivery(result)), result.verdict
    return failed(call.conclusion(result.error), "r-1"), result.verdict


def next_step(found: Posted, verdict: Verdict) -> Step:
    """What follows while no other post of the row is in doubt."""
    return after_attempt(found.reply, doubt=verdict in ("in_doubt", "executed"), tries_left=1)


@pytest.mark.parametrize("earlier", EARLIER)
def test_a_refusal_has_the_clients_verdict_unless_an_attempt_before_it_is_in_doubt(
    earlier: Verdict | None,
) -> None:
    for status, replayed, text in itertools.product(STEPS, (False, True), REFUSALS):
        found, verdict = posted(status, REFUSALS[text], replayed=replayed, earlier=earlier)
        joined = earlier == "in_doubt" and verdict != "in_doubt"
        told = (status, replayed, text)
        assert found.reply.verdict == ("in_doubt" if joined else verdict), told
        assert next_step(found, found.reply.verdict) is (Step.AGAIN if joined else STEPS[status][replayed]), (
            told
        )


@pytest.mark.parametrize("earlier", EARLIER)
def test_a_2xx_is_the_payout_only_with_its_record(earlier: Verdict | None) -> None:
    for status, replayed, name in itertools.product((200, 201, 202, 204), (False, True), RECORDS):
        body, step = RECORDS[name]
        found, verdict = posted(status, body, replayed=replayed, earlier=earlier)
        assert found.reply.verdict == verdict, (status, name)
        assert next_step(found, verdict) is step, (status, name)
        assert step is not Step.CONFIRM or (verdict, found.reply.payout_id) == ("executed", "po_1")


def test_a_payout_that_contradicts_itself_as_soon_as_it_is_made_is_described() -> None:
    posted = succeeded(Payout(id="po_1", status="completed", failed_at=NOW))
    assert (posted.status, posted.end, posted.failure) == ("completed", PayoutEnd.UNCLEAR, None)
    assert posted.message == "completed with failed_at: the service contradicts itself"


def test_the_model_service_has_the_clients_verdicts() -> None:
    for status, replayed in itertools.product(STEPS, (False, True)):
        _, verdict = posted(status, REFUSALS["taken"], replayed=replayed, earlier=None)
        assert client_verdict(status, replayed=replayed) == verdict, (status, replayed)


def test_a_2xx_with_an_id_that_cannot_be_read_whole_counts_for_the_reference_it_shows() -> None:
    def told(reference: str) -> AttemptReply:
        body = json.dumps({"data": {"id": "po_1", "reference": reference, "amount": 7}}).encode()
        attempt = Attempt(1, "executed", "unreadable", 201)
        error = DecodeError("no", record_id="po_1", body=body, effect="happened", attempts=(attempt,))
        return failed(error, "r-1").reply

    assert told("r-1") == AttemptReply(201, "executed", record="matching", payout_id="po_1")
    assert told("r-2") == AttemptReply(201, "executed", record="other")


def test_what_our_own_pacing_kept_back_was_not_sent_and_costs_no_try() -> None:
    posted = failed(DeadlineExceeded("late"), "r-1")
    assert posted.reply == AttemptReply(verdict="not_sent")
    assert not posted.counts


@pytest.mark.parametrize("verdicts", [(), ("in_doubt", "not_executed"), ("in_doubt", "not_sent")])
def test_what_another_caller_of_the_same_request_has_left_in_doubt_is_in_doubt(verdicts: Any) -> None:
    """The post was joined to a try of theirs; a refusal that came after it says nothing of the row."""
    attempts = tuple(Attempt(n, verdict, "422", 422) for n, verdict in enumerate(verdicts, 1))
    facts: dict[str, Any] = {"first_sent_at": None, "key_expires_at": None, "attempts": attempts}
    error = OutcomeUnknown("no", prepared=prepared(PAYOUT.operation), **facts)
    error.__cause__ = status_error(PAYOUT, answer(422, {"message": "No."}), NOW)
    posted = failed(error, "r-1")
    assert posted.reply == AttemptReply()
    assert posted.reply.verdict == "in_doubt"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"message": "Not valid.", "errors": {"amount": ["Too small."]}}, "Not valid; amount: Too small."),
        ({"message": "Not valid."}, "Not valid."),
        ({"errors": {"amount": ["Too small."]}}, "amount: Too small."),
        ({}, None),
    ],
)
def test_the_words_of_a_refusal_are_its_message_and_its_fields(body: Any, words: str | None) -> None:
    error = status_error(PAYOUT, answer(422, body), NOW)
    error.attempts = (Attempt(1, "not_executed", "422", 422),)
    assert failed(error, "r-1").message == words


def answered_with(kind: type[APIStatusError], status: int) -> APIStatusError:
    return kind("text", status=status, service_message=None, errors={}, headers={}, body=b"")


@pytest.mark.parametrize(
    ("error", "stop"),
    [
        (answered_with(AuthenticationError, 401), Stop.NO_ACCESS),
        (answered_with(PermissionDeniedError, 403), Stop.NO_ACCESS),
        (answered_with(NotFoundError, 404), Stop.NOT_THE_SERVICE),
        (answered_with(APIStatusError, 302), Stop.NOT_THE_SERVICE),
        (APIConnectionError("told", kind="tls"), Stop.NOT_THE_SERVICE),
        (ConfigurationError("told"), Stop.NO_ACCESS),
        (answered_with(RateLimitedError, 429), Stop.TEMPORARY),
        (answered_with(ServerError, 503), Stop.TEMPORARY),
        (APIConnectionError("told", kind="connect"), Stop.TEMPORARY),
        (PaymentsError("told"), Stop.TEMPORARY),
    ],
)
def test_a_refused_key_and_a_wrong_address_refuse_access(error: PaymentsError, stop: Stop) -> None:
    assert stop_of(error) is stop
    assert refuses_access(error) is (stop is not Stop.TEMPORARY)
    assert access_problem(error) == (None if stop is Stop.TEMPORARY else why(error))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            answered_with(AuthenticationError, 401),
            "refused the API key (HTTP 401): use a valid key of the same",
        ),
        (answered_with(PermissionDeniedError, 403), "this machine's address (HTTP 403): put that address on"),
        (answered_with(NotFoundError, 404), "something else than the service answered (HTTP 404): check"),
        (answered_with(APIStatusError, 302), "something else than the service answered (HTTP 302): check"),
        (APIConnectionError("told", kind="tls"), "something else than the service answered (tls): check the"),
        (
            APIConnectionError("told", kind="tls", detail="certificate has expired"),
            "answered (tls: certificate has expired): check the base URL",
        ),
        (ConfigurationError("the key was replaced"), "the key was replaced"),
    ],
)
def test_what_refuses_access_is_one_sentence_that_says_what_to_change(
    error: PaymentsError, told: str
) -> None:
    assert told in why(error)
    assert why(error).count("HTTP") <= 1
    assert not why(error).endswith(".")
