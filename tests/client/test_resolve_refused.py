"""Resolving a write whose answer was about another record, or whose reference is taken."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from payments_async import ConfigurationError, DuplicateReference, OutcomeUnknown, ResponseMismatch
from payments_async.sandbox import Sandbox
from tests.support.motion import PAYOUT, Played, payout_answer, play, refusal, sent
from tests.support.scripted import answer

Connect = Callable[..., Any]
OTHER = payout_answer(id="po_2", amount={"value": 99, "currency": "XOF"})
OURS = {"id": "po_1", "reference": "r-1", "amount": {"value": 10.1, "currency": "XOF"}}
TAKEN = refusal(409, message="The reference is already used.")


def page(*payouts: dict[str, Any]) -> Any:
    return answer(200, {"data": list(payouts), "pagination": {"has_more_pages": False}})


async def refused(played: Played, kind: type[Any]) -> Any:
    """The error of a creation."""
    with pytest.raises(kind) as caught:
        await played.client.payouts.create(**PAYOUT)
    return caught.value


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
        with pytest.raises(ResponseMismatch) as caught:
            await played.client.resolve(error)
        error = caught.value
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
    with pytest.raises(ResponseMismatch) as caught:
        await played.client.payouts.sync("po_1")
    assert caught.value.prepared is None
    with pytest.raises(ConfigurationError, match="effect is known"):
        await played.client.resolve(caught.value)


async def test_a_taken_reference_is_compared_with_the_request(connect: Connect) -> None:
    played = play(connect, TAKEN, page(OURS), page({**OURS, "amount": {"value": 11, "currency": "XOF"}}))
    error = await refused(played, DuplicateReference)
    assert (await played.client.resolve(error)).id == "po_1"
    with pytest.raises(ResponseMismatch) as caught:
        await played.client.resolve(error)
    assert caught.value.differences == {"amount": ("10.10", "11")}
    assert sent(played) == ["POST /payouts", *["GET /payouts?per_page=100"] * 2], "it may be of any age"


async def test_a_taken_reference_that_no_list_shows_stays_unknown(connect: Connect) -> None:
    played = play(connect, TAKEN, page())
    error = await refused(played, DuplicateReference)
    with pytest.raises(OutcomeUnknown) as caught:
        await played.client.resolve(error)
    assert caught.value.__cause__ is error


async def test_who_pays_twice_under_one_reference_gets_the_payout(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    first = await client.payouts.create(**PAYOUT)
    with pytest.raises(DuplicateReference) as caught:
        await client.payouts.create(**PAYOUT)
    assert (await client.resolve(caught.value)).id == first.id
