"""Answers as the client reads them, in the protocol's terms: the client's verdict, and what follows."""

from __future__ import annotations

import itertools
import json
from typing import Any

import attrs
import pytest

from payments_async._request.call import AttemptResult
from payments_async._request.error_responses import status_error
from payments_async._request.outcome import read_answer
from payments_async.bulk._protocol.answers import (
    Kind,
    Posted,
    doubt_wait,
    failed,
    refuses_access,
    stop_of,
    succeeded,
    unsent,
    why,
    word_of,
)
from payments_async.bulk._protocol.exit_codes import Stop
from payments_async.bulk._protocol.outcomes import RowState, Turn
from payments_async.bulk.errors import access_problem
from payments_async.errors import (
    APIConnectionError,
    APIStatusError,
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    NotFoundError,
    PaymentsError,
    PermissionDeniedError,
    RateLimitedError,
    ServerError,
)
from payments_async.models import Attempt, Payout, Verdict
from payments_async.models.statuses import PayoutEnd
from tests.support.motion import REPLAYED
from tests.support.pure_calls import BODY, NOW, PAYOUT, begun
from tests.support.rows import ledger_row
from tests.support.scripted import answer

ASKED = json.loads(BODY)
RECORD = {"id": "po_1", "reference": ASKED["reference"], "amount": {"value": 10.1, "currency": "XOF"}}
Next = tuple[RowState, Turn]
CREATED = (RowState.CREATED, Turn.NOTHING)
REJECTED = (RowState.REJECTED, Turn.NOTHING)
BACK = (RowState.NEW, Turn.POST)
"""It made nothing: given back."""
AGAIN = (RowState.IN_DOUBT, Turn.POST)
LOOK = (RowState.IN_DOUBT, Turn.LOOK)
RECORDS: dict[str, tuple[Any, Next]] = {
    "the payout": ({"data": RECORD}, CREATED),
    "another amount": ({"data": {**RECORD, "amount": {"value": 7, "currency": "XOF"}}}, LOOK),
    "an odd field": ({"data": {**RECORD, "amount": 7}}, CREATED),
    "an odd field of another": ({"data": {**RECORD, "amount": 7, "reference": "r-2"}}, AGAIN),
    "no id": ({"data": {**RECORD, "id": None}}, AGAIN),
    "no object": ([], AGAIN),
    "HTML": (b"<html>", AGAIN),
    "nothing": (b"", AGAIN),
}
"""{what a 2xx carries: its body, what becomes of the row}."""
REFUSALS = {
    "taken": {"message": "The reference has already been taken."},
    "at work": {"message": "The request is being processed."},
    "other key": {"message": "The idempotency key belongs to another body."},
    "HTML": b"<html>",
}
"""What a 409 may say, and any other error."""
ADDRESS, KEY = Stop.NOT_THE_SERVICE, Stop.NO_ACCESS
NEXT: dict[int, tuple[Next, Next, Stop | None]] = {
    **dict.fromkeys((100, 408, 500, 501, 503, 599, 600), (AGAIN, LOOK, None)),
    **dict.fromkeys((400, 402, 413, 422, 428, 451), (REJECTED, REJECTED, None)),
    **dict.fromkeys((401, 403), (BACK, LOOK, KEY)),
    **dict.fromkeys((404, 405, 407, 421), (BACK, LOOK, ADDRESS)),
    **dict.fromkeys((301, 302, 308), (AGAIN, AGAIN, ADDRESS)),
    409: (LOOK, LOOK, None),
    429: (BACK, LOOK, None),
}
"""{status: what becomes of a row by the answer, by a replay of it; what an answer stops}."""
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


def next_of(found: Posted, *, doubted: bool = False) -> Next:
    """What becomes of a row, sent once in this generation, of which an earlier send may be in doubt."""
    word = word_of(attrs.evolve(ledger_row(), takes=1, doubted=doubted), found)
    return word.state, word.turn


@pytest.mark.parametrize("earlier", EARLIER)
def test_a_refusal_has_the_clients_verdict_unless_an_attempt_before_it_is_in_doubt(
    earlier: Verdict | None,
) -> None:
    for status, replayed, text in itertools.product(NEXT, (False, True), REFUSALS):
        found, verdict = posted(status, REFUSALS[text], replayed=replayed, earlier=earlier)
        joined = earlier == "in_doubt" and verdict != "in_doubt"
        told = (status, replayed, text)
        assert found.verdict == ("in_doubt" if joined else verdict), told
        assert next_of(found) == (AGAIN if joined else NEXT[status][replayed]), told


@pytest.mark.parametrize("status", [400, 422, 428])
def test_a_refusal_about_the_key_alone_says_nothing_of_the_row(status: int) -> None:
    said = {"errors": {"idempotency_key": ["belongs to another body"]}}
    found, verdict = posted(status, said, replayed=False, earlier=None)
    assert (verdict, next_of(found)) == ("in_doubt", LOOK)


@pytest.mark.parametrize("status", NEXT)
def test_what_made_nothing_leaves_an_earlier_send_of_the_row_in_doubt(status: int) -> None:
    usual, _, stop = NEXT[status]
    found, _ = posted(status, {}, replayed=False, earlier=None)
    assert next_of(found, doubted=True) == {REJECTED: LOOK, BACK: AGAIN}.get(usual, usual)
    word = word_of(ledger_row(), found)
    assert word.stop is stop
    assert word.is_doubt is (usual in (AGAIN, LOOK))


@pytest.mark.parametrize("earlier", EARLIER)
def test_a_2xx_is_the_payout_only_with_its_record(earlier: Verdict | None) -> None:
    for status, replayed, name in itertools.product((200, 201, 202, 204), (False, True), RECORDS):
        body, becomes = RECORDS[name]
        found, verdict = posted(status, body, replayed=replayed, earlier=earlier)
        assert found.verdict == verdict, (status, name)
        assert next_of(found) == next_of(found, doubted=True) == becomes, (status, name)
        assert becomes != CREATED or (verdict, found.payout_id) == ("executed", "po_1")


def test_a_row_in_doubt_is_posted_again_ever_later_and_at_last_looked_for() -> None:
    assert [doubt_wait(takes) for takes in range(1, 12)] == [
        *(0.5, 1.0, 2.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0),
        None,  # fifteen minutes: the list proves more
    ]
    silent = Posted(Kind.SILENT)
    assert next_of(silent) == AGAIN
    word = word_of(attrs.evolve(ledger_row(), takes=11), silent)
    assert (word.state, word.turn) == LOOK


@pytest.mark.parametrize(
    ("found", "takes", "wait", "is_failure"),
    [
        (Posted(Kind.THROTTLED, "not_executed", retry_after=7.5), 1, 7.5, False),
        (Posted(Kind.THROTTLED, "not_executed"), 1, 1.0, False),
        (Posted(Kind.UNSENT, "not_sent"), 1, 1.0, True),
        (Posted(Kind.UNSENT, "not_sent"), 3, 4.0, True),
        (Posted(Kind.UNSENT, "not_sent"), 99, 60.0, True),
        (Posted(Kind.WITHHELD, "not_sent"), 9, 0.0, False),
        (Posted(Kind.CREDENTIALS, "not_executed"), 9, 0.0, False),
    ],
)
def test_a_row_that_is_given_back_waits_as_the_service_asks(
    found: Posted, takes: int, wait: float, is_failure: bool
) -> None:
    word = word_of(attrs.evolve(ledger_row(), takes=takes), found)
    assert ((word.state, word.turn), word.wait, word.is_failure) == (BACK, wait, is_failure)


def test_a_server_that_does_not_prove_its_name_stops_the_run() -> None:
    word = word_of(ledger_row(), Posted(Kind.NOT_THE_SERVICE, "not_sent"))
    assert ((word.state, word.turn), word.stop) == (BACK, ADDRESS)


def test_a_row_that_is_given_back_unsent_is_as_it_was() -> None:
    assert (unsent(ledger_row()).state, unsent(ledger_row()).kind) == (RowState.NEW, Kind.WITHHELD)
    assert unsent(attrs.evolve(ledger_row(), doubted=True)).state is RowState.IN_DOUBT


def test_a_payout_that_contradicts_itself_as_soon_as_it_is_made_is_described() -> None:
    posted = succeeded(Payout(id="po_1", status="completed", failed_at=NOW))
    assert (posted.status, posted.end, posted.code) == ("completed", PayoutEnd.UNCLEAR, None)
    assert posted.message == "completed with failed_at: the service contradicts itself"


def test_a_2xx_with_an_id_that_cannot_be_read_whole_counts_for_the_reference_it_shows() -> None:
    def told(reference: str) -> tuple[Kind, Verdict, str]:
        body = json.dumps({"data": {"id": "po_1", "reference": reference, "amount": 7}}).encode()
        attempt = Attempt(1, "executed", "unreadable", 201)
        error = DecodeError("no", record_id="po_1", body=body, effect="happened", attempts=(attempt,))
        found = failed(error, "r-1")
        return found.kind, found.verdict, found.payout_id

    assert told("r-1") == (Kind.SUCCESS, "executed", "po_1")
    assert told("r-2") == (Kind.OTHER_RECORD, "executed", "")


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


def test_the_words_of_a_server_that_does_not_prove_its_name_are_what_is_wrong() -> None:
    error = APIConnectionError("told", kind="tls", detail="certificate has expired")
    error.attempts = (Attempt(1, "not_sent", "tls", None),)
    posted = failed(error, "r-1")
    assert (posted.kind, posted.message) == (Kind.NOT_THE_SERVICE, "certificate has expired")


def answered_with(kind: type[APIStatusError], status: int) -> APIStatusError:
    return kind("text", status=status, service_message=None, errors={}, headers={}, body=b"")


WRONG = "something else than the service answered ({}): check the base URL"


@pytest.mark.parametrize(
    ("error", "stop", "told"),
    [
        (
            answered_with(AuthenticationError, 401),
            Stop.NO_ACCESS,
            "the service refused the API key (HTTP 401): use a valid key of the same project",
        ),
        (
            answered_with(PermissionDeniedError, 403),
            Stop.NO_ACCESS,
            "the service does not take the API key from this machine's address (HTTP 403): put that address "
            "on the key's allowlist",
        ),
        (answered_with(NotFoundError, 404), Stop.NOT_THE_SERVICE, WRONG.format("HTTP 404")),
        (answered_with(APIStatusError, 302), Stop.NOT_THE_SERVICE, WRONG.format("HTTP 302")),
        (APIConnectionError("told", kind="tls"), Stop.NOT_THE_SERVICE, WRONG.format("tls")),
        (
            APIConnectionError("told", kind="tls", detail="certificate has expired"),
            Stop.NOT_THE_SERVICE,
            WRONG.format("tls: certificate has expired"),
        ),
        (ConfigurationError("the key was replaced"), Stop.NO_ACCESS, "the key was replaced"),
        (answered_with(RateLimitedError, 429), Stop.TEMPORARY, "text"),
        (answered_with(ServerError, 503), Stop.TEMPORARY, "text"),
        (APIConnectionError("told", kind="connect"), Stop.TEMPORARY, "told"),
        (PaymentsError("told"), Stop.TEMPORARY, "told"),
    ],
)
def test_a_refused_key_and_a_wrong_address_refuse_access_and_say_what_to_change(
    error: PaymentsError, stop: Stop, told: str
) -> None:
    assert stop_of(error) is stop
    assert refuses_access(error) is (stop is not Stop.TEMPORARY)
    assert access_problem(error) == (None if stop is Stop.TEMPORARY else told)
    assert told in why(error)
