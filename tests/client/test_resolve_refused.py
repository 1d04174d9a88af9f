"""Resolving a write whose answer was about another record, or whose reference is taken."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from payments_async import (
    AuthenticationError,
    ConfigurationError,
    DuplicateReference,
    IdempotencyConflict,
    PaymentsError,
    ResponseMismatch,
    ServerError,
)
from tests.support.motion import OURS, PAYOUT, Played, listed, methods, payout_answer, play, refusal, sent
from tests.support.scripted import answer
from tests.support.surfaces import Connect, error_of

OTHER = payout_answer(id="po_2", amount={"value": 99, "currency": "XOF"})
TAKEN = refusal(409, message="The reference is already used.")


async def refused(played: Played, kind: type[Any], **changes: Any) -> Any:
    """The error of a creation."""
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
