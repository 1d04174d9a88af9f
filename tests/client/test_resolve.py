"""Finding out what became of a creation in doubt, within its key's life and after it."""

from __future__ import annotations

import pickle
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from payments_async import (
    AuthenticationError,
    ConfigurationError,
    DecodeError,
    Instrument,
    OutcomeUnknown,
    PreparedRequest,
    ResponseMismatch,
    SearchIncomplete,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox
from tests.support.motion import (
    INTENT,
    OURS,
    PAYOUT,
    REPLAYED,
    doubt,
    jumping,
    methods,
    payout_answer,
    play,
    refusal,
    sent,
    unresolved,
)
from tests.support.scripted import answer, lost, unsent
from tests.support.surfaces import Connect

HOUR = 3600.0


def page(*payouts: dict[str, Any], cursor: str | None = None) -> Any:
    return answer(200, {"data": list(payouts), "pagination": {"next_cursor": cursor}})


async def test_within_the_keys_life_the_same_request_goes_out_again(connect: Connect) -> None:
    played = play(connect, lost(), payout_answer(headers=REPLAYED))
    error = await doubt(played)
    played.runtime.advance(22.9 * HOUR)
    payout = await played.client.resolve(error)
    assert (payout.id, payout.response.replayed) == ("po_1", True)
    assert len(set(played.keys)) == 1
    assert len({request.body for request in played.transport.requests}) == 1


async def test_a_creation_that_never_arrived_is_made_by_resolving_it(
    connect: Connect, sandbox: Sandbox
) -> None:
    client = jumping(connect, sandbox)
    sandbox.on("payouts.create").respond("lost_request", times=3)
    with pytest.raises(OutcomeUnknown) as caught:
        await client.payouts.create(**PAYOUT)
    assert sandbox.books.payouts() == []
    payout = await client.resolve(caught.value)
    assert [entry.id for entry in sandbox.books.payouts()] == [payout.id]


@pytest.mark.parametrize("how", ["payouts", "payment_intents", "checkouts"])
async def test_a_stored_request_is_resolved_like_its_error(
    connect: Connect, sandbox: Sandbox, how: str
) -> None:
    client = jumping(connect, sandbox)
    sandbox.on(f"{how}.create").respond("lost_response", times=3)
    prepared = getattr(client, how).prepare(**(PAYOUT if how == "payouts" else INTENT))
    stored = prepared.to_json()
    with pytest.raises(OutcomeUnknown):
        await client.send(prepared)
    record = await client.resolve(PreparedRequest.from_json(stored))
    assert record.response.replayed
    assert len(sandbox.books.payouts()) + len(sandbox.books.payments()) == 1


async def test_a_refusal_that_is_the_first_answer_is_certain(connect: Connect) -> None:
    played = play(connect, lost(), refusal(422, {"X-Idempotent-Replayed": "True"}))
    error = await doubt(played)
    with pytest.raises(UnprocessableError) as caught:
        await played.client.resolve(error)
    assert caught.value.effect == "none"
    assert sent(played) == ["POST /payouts"] * 2


@pytest.mark.parametrize(
    ("replayed", "written"),  # in which case its method is written is no difference
    [({}, {}), (REPLAYED, {}), ({}, {"method": "MTN_BJ"})],
)
async def test_after_a_409_the_payout_is_found_by_its_reference(
    connect: Connect, replayed: Any, written: Any
) -> None:
    played = play(connect, lost(), refusal(409, replayed), page({**OURS, **written}))
    found = await played.client.resolve(await doubt(played))
    assert (found.id, found.amount.value) == ("po_1", Decimal("10.1"))
    assert sent(played)[2] == "GET /payouts?created_at%5Bgte%5D=2025-12-31&per_page=100"


@pytest.mark.parametrize(
    ("changes", "differs"),
    [
        ({"amount": {"value": 11, "currency": "XOF"}}, "amount"),
        ({"amount": {"value": 10.1, "currency": "EUR"}}, "currency"),
        ({"method": "moov_bj"}, "method"),
        ({"instrument": {"phone_number": "+22990112299", "country": "BJ"}}, "instrument.phone_number"),
    ],
)
async def test_another_payout_under_the_reference_is_a_mismatch(
    connect: Connect, changes: Any, differs: str
) -> None:
    played = play(connect, lost(), refusal(409), page({**OURS, **changes}))
    error = await doubt(played)
    with pytest.raises(ResponseMismatch) as caught:
        await played.client.resolve(error)
    assert list(caught.value.differences) == [differs]
    assert (caught.value.effect, caught.value.idempotency_key) == ("unknown", played.keys[0])


PHONE = Instrument.phone("+2290190112233", "BJ")
BANK = Instrument.bank_account("0012345678", "058", "NG", account_name="Ama")
TOKEN = Instrument.crypto_address("TAbc1", "tron", memo_tag="77")


@pytest.mark.parametrize(
    ("asked", "shown", "differs"),
    [
        (PHONE, {"phone_number": PHONE.phone_number}, []),
        (PHONE, {"phone_number": "+2290190112299"}, ["instrument.phone_number"]),
        (BANK, {"account_number": "0012345678", "bank_code": "058"}, []),
        (BANK, {"account_number": "0012345679", "bank_code": "058"}, ["instrument.account_number"]),
        (BANK, {"account_number": "0012345678", "bank_code": "059"}, ["instrument.bank_code"]),
        (BANK, {"account_number": "00******78", "account_name": "Kofi"}, []),
        (TOKEN, {"address": "tabc1", "network": "TRON", "memo_tag": None}, []),
        (TOKEN, {"address": "TAbc2", "network": "base"}, ["instrument.address", "instrument.network"]),
        (TOKEN, {"address": "TAbc1", "network": "tron", "memo_tag": "78"}, ["instrument.memo_tag"]),
    ],
)
async def test_every_answer_is_held_against_the_receiver(
    connect: Connect, asked: Instrument, shown: dict[str, Any], differs: list[str]
) -> None:
    """The first answer, a replayed one, and that to a stored request: one comparison."""
    answers = [payout_answer(201, headers, instrument=shown) for headers in ({}, REPLAYED)]
    for given in (asked, asked.to_dict()):
        for answered in answers:
            played = play(connect, answered)
            fields = {**PAYOUT, "instrument": given}
            client, prepared = played.client, played.client.payouts.prepare(**fields)
            for send in (partial(client.payouts.create, **fields), partial(client.send, prepared)):
                if not differs:
                    assert (await send()).id == "po_1"
                    continue
                with pytest.raises(ResponseMismatch) as caught:
                    await send()
                assert caught.value.differences == dict.fromkeys(differs, ("***", "***"))


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_a_stored_failure_leads_to_the_list(connect: Connect, status: int) -> None:
    played = play(connect, lost(), refusal(status, REPLAYED), page(OURS))
    assert (await played.client.resolve(await doubt(played))).id == "po_1"


async def test_a_resend_that_got_lost_too_leads_to_the_list(connect: Connect) -> None:
    played = play(connect, *[lost()] * 4, page({**OURS, "reference": "r-0"}, OURS))
    assert (await played.client.resolve(await doubt(played))).id == "po_1"


async def test_a_409_that_nothing_in_the_list_explains_stays_unknown(connect: Connect) -> None:
    played = play(connect, lost(), refusal(409), page())
    error = await doubt(played)
    played.runtime.advance(HOUR)
    caught = await unresolved(played, error)
    assert caught.__cause__.status == 409


async def test_a_fresh_refusal_is_certain_once_no_earlier_request_can_be_alive(connect: Connect) -> None:
    played = play(connect, lost(), refusal(422), page(), refusal(422), page())
    error = await doubt(played)
    early = await unresolved(played, error)
    assert isinstance(early.__cause__, UnprocessableError)
    played.runtime.advance(16 * 60.0)
    with pytest.raises(UnprocessableError) as late:
        await played.client.resolve(error)
    assert late.value.effect == "none"


@pytest.mark.parametrize("stored", [False, True])
async def test_a_fresh_refusal_is_not_certain_while_a_late_try_may_be_alive(
    connect: Connect, stored: bool
) -> None:
    """The request is old, and was sent again a moment ago, or nobody knows when."""
    played = play(connect, lost(), refusal(422), page())
    prepared = played.client.payouts.prepare(**PAYOUT)
    played.runtime.advance(HOUR)
    with pytest.raises(OutcomeUnknown) as caught:
        await played.client.send(prepared, max_retries=0)
    resolved = await unresolved(played, prepared if stored else caught.value)
    assert resolved.__cause__.status == 422


@pytest.mark.parametrize("status", [401, 403, 429])
async def test_a_refusal_of_the_question_says_nothing_about_the_creation(
    connect: Connect, status: int
) -> None:
    played = play(connect, lost(), refusal(status))
    error = await doubt(played)
    played.runtime.advance(HOUR)
    caught = await unresolved(played, error)
    assert caught.__cause__.status == status
    assert caught.attempts[-1].status == status
    assert set(methods(played)) == {"POST"}


@pytest.mark.parametrize("hours", [23.0, 100.0, -1.0])
async def test_with_an_expired_key_or_clock_the_payout_is_only_looked_up(
    connect: Connect, hours: float
) -> None:
    played = play(connect, lost(), page(OURS))
    error = await doubt(played)
    played.runtime.advance(hours * HOUR)
    assert (await played.client.resolve(error)).id == "po_1"
    assert methods(played) == ["POST", "GET"]


async def test_not_in_the_list_stays_unknown_with_an_expired_key(connect: Connect) -> None:
    played = play(connect, lost(), page())
    error = await doubt(played)
    played.runtime.advance(24 * HOUR)
    caught = await unresolved(played, error)
    assert (caught.first_sent_at, caught.effect) == (error.first_sent_at, "unknown")


@pytest.mark.parametrize("how", ["payment_intents", "checkouts"])
async def test_payments_have_no_reference_and_stay_unknown_with_an_expired_key(
    connect: Connect, how: str
) -> None:
    played = play(connect, lost())
    error = await doubt(played, how)
    played.runtime.advance(23 * HOUR)
    await unresolved(played, error)
    assert len(sent(played)) == 1


async def test_resolving_again_and_again_does_not_stretch_the_keys_life(connect: Connect) -> None:
    """Else a payment would be made twice: the service forgets the key 24 hours after the first sending."""
    played = play(connect, lost())
    error = await doubt(played, "payment_intents")
    played.runtime.advance(22 * HOUR)
    again = await unresolved(played, error)
    assert again.key_expires_at == error.key_expires_at
    posts = len(sent(played))
    played.runtime.advance(2 * HOUR)
    await unresolved(played, again)
    assert len(sent(played)) == posts


async def test_sending_a_stored_request_again_does_not_stretch_it_either(connect: Connect) -> None:
    played = play(connect, lost())
    prepared = played.client.payment_intents.prepare(**INTENT)
    played.runtime.advance(22 * HOUR)
    with pytest.raises(OutcomeUnknown) as caught:
        await played.client.send(prepared)
    posts = len(sent(played))
    played.runtime.advance(2 * HOUR)
    await unresolved(played, caught.value)
    assert len(sent(played)) == posts


@pytest.mark.parametrize(
    ("last", "cause"), [(refusal(401), AuthenticationError), (answer(200, b"<html>"), DecodeError)]
)
async def test_a_look_up_that_fails_leaves_it_unknown_and_says_why(
    connect: Connect, last: Any, cause: type[Exception]
) -> None:
    played = play(connect, lost(), last)
    error = await doubt(played)
    played.runtime.advance(24 * HOUR)
    caught = await unresolved(played, error)
    assert isinstance(caught.__cause__, cause)


async def test_a_list_without_end_leaves_it_unknown(connect: Connect) -> None:
    cursors = (page(cursor=f"c-{number}") for number in range(200))
    played = play(connect, lost(), *cursors)
    error = await doubt(played)
    played.runtime.advance(24 * HOUR)
    caught = await unresolved(played, error)
    assert isinstance(caught.__cause__, SearchIncomplete)


async def test_what_the_resend_proves_is_the_last_word(connect: Connect) -> None:
    played = play(connect, lost(), payout_answer(fee_amount=7), payout_answer(reference="r-9"))
    error = await doubt(played)
    with pytest.raises(DecodeError) as happened:
        await played.client.resolve(error)
    assert (happened.value.effect, happened.value.record_id) == ("happened", "po_1")
    with pytest.raises(ResponseMismatch) as other:
        await played.client.resolve(error)
    assert other.value.effect == "unknown"


async def test_an_error_that_was_pickled_is_refused_with_what_to_do(connect: Connect) -> None:
    played = play(connect, lost())
    error = pickle.loads(pickle.dumps(await doubt(played)))
    with pytest.raises(ConfigurationError, match=r"to_json\(\)"):
        await played.client.resolve(error)


async def test_a_secret_key_of_another_environment_is_noticed_before_anything_is_sent_with_it(
    connect: Connect,
) -> None:
    keys = iter(["sk_sandbox_a", "sk_live_b"])
    address = "https://pay.example/v1"
    played = play(connect, unsent(), api_key=lambda: next(keys), base_url=address)
    with pytest.raises(ConfigurationError, match="live key"):
        await played.client.payouts.create(**PAYOUT)
    assert [str(request.headers["Authorization"]) for request in played.transport.requests] == [
        "Bearer sk_sandbox_a"
    ]
