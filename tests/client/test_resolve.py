"""Finding out what became of a creation in doubt, answered about another record, or of a taken reference."""

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
    DuplicateReference,
    IdempotencyConflict,
    Instrument,
    OutcomeUnknown,
    PaymentsError,
    PreparedRequest,
    ResponseMismatch,
    SearchIncomplete,
    ServerError,
    UnprocessableError,
)
from payments_async.sandbox import Sandbox
from tests.support.motion import (
    INTENT,
    OURS,
    PAYOUT,
    REPLAYED,
    Played,
    doubt,
    jumping,
    listed,
    methods,
    payout_answer,
    play,
    refusal,
    sent,
    unresolved,
)
from tests.support.scripted import answer, lost, unsent
from tests.support.surfaces import Connect, error_of

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


@pytest.mark.parametrize("how", ["payouts", "payment_intents", "checkouts"])
async def test_a_stored_request_is_resolved_too(connect: Connect, sandbox: Sandbox, how: str) -> None:
    client = jumping(connect, sandbox)
    sandbox.on(f"{how}.create").respond("lost_response", times=3)
    prepared = getattr(client, how).prepare(**(PAYOUT if how == "payouts" else INTENT))
    stored = prepared.to_json()
    with pytest.raises(OutcomeUnknown):
        await client.send(prepared)
    record = await client.resolve(PreparedRequest.from_json(stored))
    assert record.response.replayed
    assert len(sandbox.books.payouts()) + len(sandbox.books.payments()) == 1


EMPTY = page()
FOUND = page({**OURS, "reference": "r-0"}, OURS)
ENDLESS = [page(cursor=f"c-{number}") for number in range(200)]
HTML = answer(200, b"<html>")
SOON, LATER = 0.0, 1.0
EXPIRED = 23.0


@pytest.mark.parametrize(
    ("how", "script", "hours", "comes", "sent_again", "looked_up"),
    [
        # a refusal that is the first answer is certain, and says nothing of another time's request
        ("payouts", [refusal(422, {"X-Idempotent-Replayed": "True"})], SOON, UnprocessableError, True, False),
        # after a 409, and after a failure that the service stored, the payout is found by its reference
        ("payouts", [refusal(409), FOUND], SOON, "po_1", True, True),
        ("payouts", [refusal(409, REPLAYED), FOUND], SOON, "po_1", True, True),
        ("payouts", [refusal(409), page({**OURS, "method": "MTN_BJ"})], SOON, "po_1", True, True),
        *(
            ("payouts", [refusal(code, REPLAYED), FOUND], SOON, "po_1", True, True)
            for code in (500, 503, 429)
        ),
        ("payouts", [*[lost()] * 3, FOUND], SOON, "po_1", True, True),
        ("payouts", [refusal(409), EMPTY], LATER, 409, True, True),
        # a refusal of the question says nothing about the creation
        *(("payouts", [refusal(status)], LATER, status, True, False) for status in (401, 403, 429)),
        # with an expired key, or a clock that went back, the payout is looked up alone
        *(("payouts", [FOUND], hours, "po_1", False, True) for hours in (EXPIRED, 100.0, -1.0)),
        ("payouts", [EMPTY], EXPIRED, None, False, True),
        ("payouts", [refusal(401)], EXPIRED, AuthenticationError, False, True),
        ("payouts", [HTML], EXPIRED, DecodeError, False, True),
        ("payouts", ENDLESS, EXPIRED, SearchIncomplete, False, True),
        # and payments have no reference to be found by
        ("payment_intents", [], EXPIRED, None, False, False),
        ("checkouts", [], EXPIRED, None, False, False),
    ],
)
async def test_what_became_of_a_creation_in_doubt(
    connect: Connect, how: str, script: list[Any], hours: float, comes: Any, sent_again: bool, looked_up: bool
) -> None:
    """`comes`: the id that is found, the certain error, or why it stays unknown (a status, a class)."""
    played = play(connect, lost(), *script)
    error = await doubt(played, how)
    played.runtime.advance(hours * HOUR)
    if isinstance(comes, str):
        assert (await played.client.resolve(error)).id == comes
    elif comes is UnprocessableError:
        certain = await error_of(UnprocessableError, played.client.resolve(error))
        assert certain.effect == "none"
    else:
        caught = await unresolved(played, error)
        assert (caught.first_sent_at, caught.effect) == (error.first_sent_at, "unknown")
        if isinstance(comes, int):
            assert (caught.__cause__.status, caught.attempts[-1].status) == (comes, comes)
        elif comes is not None:
            assert isinstance(caught.__cause__, comes)
    assert (methods(played).count("POST") > 1, "GET" in methods(played)) == (sent_again, looked_up)


async def test_a_payout_is_looked_for_from_the_day_before_it_was_first_sent(connect: Connect) -> None:
    played = play(connect, lost(), refusal(409), FOUND)
    found = await played.client.resolve(await doubt(played))
    assert found.amount.value == Decimal("10.1")
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
async def test_another_payout_is_a_mismatch(connect: Connect, changes: Any, differs: str) -> None:
    played = play(connect, lost(), refusal(409), page({**OURS, **changes}))
    error = await doubt(played)
    caught = await error_of(ResponseMismatch, played.client.resolve(error))
    assert list(caught.differences) == [differs]
    assert (caught.effect, caught.idempotency_key) == ("unknown", played.keys[0])


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
                caught = await error_of(ResponseMismatch, send())
                assert caught.differences == dict.fromkeys(differs, ("***", "***"))


async def test_a_fresh_refusal_is_certain_once_no_earlier_request_can_be_alive(connect: Connect) -> None:
    played = play(connect, lost(), refusal(422), page(), refusal(422), page())
    error = await doubt(played)
    early = await unresolved(played, error)
    assert isinstance(early.__cause__, UnprocessableError)
    played.runtime.advance(16 * 60.0)
    late = await error_of(UnprocessableError, played.client.resolve(error))
    assert late.effect == "none"


@pytest.mark.parametrize("stored", [False, True])
async def test_a_fresh_refusal_is_uncertain_while_a_try_may_live(connect: Connect, stored: bool) -> None:
    """The request is old, and was sent again a moment ago, or nobody knows when."""
    played = play(connect, lost(), refusal(422), page())
    prepared = played.client.payouts.prepare(**PAYOUT)
    played.runtime.advance(HOUR)
    caught = await error_of(OutcomeUnknown, played.client.send(prepared, max_retries=0))
    resolved = await unresolved(played, prepared if stored else caught)
    assert resolved.__cause__.status == 422


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
    caught = await error_of(OutcomeUnknown, played.client.send(prepared))
    posts = len(sent(played))
    played.runtime.advance(2 * HOUR)
    await unresolved(played, caught)
    assert len(sent(played)) == posts


async def test_what_the_resend_proves_is_the_last_word(connect: Connect) -> None:
    played = play(connect, lost(), payout_answer(fee_amount=7), payout_answer(reference="r-9"))
    error = await doubt(played)
    happened = await error_of(DecodeError, played.client.resolve(error))
    assert (happened.effect, happened.record_id) == ("happened", "po_1")
    other = await error_of(ResponseMismatch, played.client.resolve(error))
    assert other.effect == "unknown"


async def test_an_error_that_was_pickled_is_refused_with_what_to_do(connect: Connect) -> None:
    played = play(connect, lost())
    error = pickle.loads(pickle.dumps(await doubt(played)))
    with pytest.raises(ConfigurationError, match=r"to_json\(\)"):
        await played.client.resolve(error)


async def test_a_secret_key_of_another_environment_is_noticed_before_sending(connect: Connect) -> None:
    keys = iter(["sk_sandbox_a", "sk_live_b"])
    address = "https://pay.example/v1"
    played = play(connect, unsent(), api_key=lambda: next(keys), base_url=address)
    with pytest.raises(ConfigurationError, match="live key"):
        await played.client.payouts.create(**PAYOUT)
    assert [str(request.headers["Authorization"]) for request in played.transport.requests] == [
        "Bearer sk_sandbox_a"
    ]


OTHER = payout_answer(id="po_2", amount={"value": 99, "currency": "XOF"})
TAKEN = refusal(409, message="The reference is already used.")


async def refused(played: Played, kind: type[Any], **changes: Any) -> Any:
    return await error_of(kind, played.client.payouts.create(**{**PAYOUT, **changes}))


async def test_an_answer_to_another_request_is_replaced_by_the_right_one(connect: Connect) -> None:
    played = play(connect, OTHER, payout_answer())
    error = await refused(played, ResponseMismatch)
    assert error.prepared.idempotency_key == error.idempotency_key
    assert (await played.client.resolve(error)).id == "po_1"
    assert len(set(played.keys)) == 1


async def test_a_record_that_differs_for_good_is_a_mismatch_each_time(connect: Connect) -> None:
    played = play(connect, OTHER)
    error = await refused(played, ResponseMismatch)
    for times in (2, 3):
        caught = await error_of(ResponseMismatch, played.client.resolve(error))
        error = caught
        assert sent(played) == ["POST /payouts"] * times


@pytest.mark.parametrize(("script", "kind"), [(OTHER, ResponseMismatch), (TAKEN, DuplicateReference)])
async def test_a_pickle_leaves_the_request_behind(connect: Connect, script: Any, kind: type[Any]) -> None:
    played = play(connect, script)
    error = pickle.loads(pickle.dumps(await refused(played, kind)))
    assert error.prepared is None
    with pytest.raises(ConfigurationError, match=r"to_json\(\)"):
        await played.client.resolve(error)


async def test_a_read_about_another_record_is_nothing_to_resolve(connect: Connect) -> None:
    played = play(connect, answer(200, {"data": {**OURS, "id": "po_9"}}))
    caught = await error_of(ResponseMismatch, played.client.payouts.sync("po_1"))
    assert caught.prepared is None
    with pytest.raises(ConfigurationError, match="effect is known"):
        await played.client.resolve(caught)


async def test_a_taken_reference_is_compared_with_the_request(connect: Connect) -> None:
    played = play(connect, TAKEN, listed(OURS), listed({**OURS, "amount": {"value": 11, "currency": "XOF"}}))
    error = await refused(played, DuplicateReference)
    assert (await played.client.resolve(error)).id == "po_1"
    caught = await error_of(ResponseMismatch, played.client.resolve(error))
    assert caught.differences == {"amount": ("10.1", "11")}
    assert caught.effect == "none"
    assert sent(played) == ["POST /payouts", *["GET /payouts?per_page=100"] * 2], "it may be of any age"


@pytest.mark.parametrize(
    ("read", "raised"),
    [(listed(), DuplicateReference), (refusal(401), AuthenticationError), (refusal(501), ServerError)],
)
async def test_a_taken_reference_not_found(connect: Connect, read: Any, raised: type[PaymentsError]) -> None:
    played = play(connect, TAKEN, read)
    error = await refused(played, DuplicateReference)
    caught = await error_of(raised, played.client.resolve(error))
    assert caught.effect == "none"
    assert methods(played) == ["POST", "GET"]


@pytest.mark.parametrize(
    ("asked", "shown", "differs"),
    [
        ("+22990112233", "+22990112233", False),
        ("+22990112233", "+22990112299", True),
        ("+22990112233", "+2299011****", False),
        ("+22990112233", "+229901122", False),  # its beginning
        ("+22990112233", "2233", False),  # its end
        ("+22990112233", "90112233", False),  # national
        ("+22990112233", "90112299", True),
        ("+22990112233", "+2290190112233", False),  # the country's new form
        ("+22990112233", "+2290190112299", True),
        ("+22990112233", "+229 90-11-22-33", False),
        ("+22990112233", "+229 90-11-22-99", True),
        ("+22990112233", "xxxxxxxx2233", False),
        ("+22990112233", "229...33", False),
        ("0241234567", "+233241234567", False),
        ("0241234567", "+233209999999", True),
        ("+233241234567", "+2330241234567", False),
        ("89161234567", "+79161234567", False),
        ("0xAbCd12", "0xabcd12", False),
        ("0xAbCd12", "0xabcd13", True),
        ("GB29NWBK60161331926819", "GB29XXXXXXXXXXXXXX6819", False),
        ("GB29NWBK60161331926819", "GB29NWBK60161331926800", True),
        ("GB29NWBK60161331926819", "60161331926819", False),  # the account of an IBAN
        ("MT84MALT011000012345MTLCASTX01S", "MT84MALT011000012345MTLCASTY02S", True),
        ("TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE", "TXLAQ63Xg1NAzckPwKHvzw7CSEmLMEqcdj", True),  # no mask
        ("123-4567", "12345678", True),
        ("5512345678", "99912345678", True),
        ("1234567", "12345678", True),
        ("ABCD1234567890", "ZZZZ99999999999", True),
        ("0012345678", "12345678", False),  # without its zeros
    ],
)
async def test_whose_receiver_is_another(connect: Connect, asked: str, shown: str, differs: bool) -> None:
    receiver = {"type": "bank_account", "account_number": asked, "country": "BJ"}
    other = {**OURS, "instrument": {**receiver, "account_number": shown}}
    played = play(connect, TAKEN, listed(other))
    error = await refused(played, DuplicateReference, instrument=receiver)
    if not differs:
        assert (await played.client.resolve(error)).id == "po_1"
        return
    caught = await error_of(
        ResponseMismatch, played.client.resolve(error), match=r"instrument\.account_number differ"
    )
    assert caught.effect == "none"
    assert caught.differences == {"instrument.account_number": ("***", "***")}


async def test_an_error_that_holds_no_request_is_told_by_its_name(connect: Connect) -> None:
    played = play(connect, refusal(409, message="The idempotency key was used for another request."))
    error = await refused(played, IdempotencyConflict)
    error.effect = "unknown"
    with pytest.raises(ConfigurationError, match=r"resolve\(\) takes no IdempotencyConflict"):
        await played.client.resolve(error)
