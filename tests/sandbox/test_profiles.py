"""Gap profiles: what changes where the interface is silent."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import attrs
import pytest

from payments_async.sandbox import HOSTILE, OBSERVED, Profile, Sandbox, VirtualClock
from tests.sandbox.api import Api

HOOK = "https://merchant.test/hook"


def under(profile: Profile | str) -> Api:
    sandbox = Sandbox(profile=profile, clock=VirtualClock.frozen())
    return Api(sandbox, sandbox.api_key)


def test_a_profile_is_chosen_by_name_or_value() -> None:
    assert under("hostile").payout().status == under(HOSTILE).payout().status == 200
    with pytest.raises(ValueError, match="observed, hostile"):
        Sandbox(profile="friendly")


def test_the_observed_profile_distorts_nothing() -> None:
    assert not OBSERVED.distorts
    assert HOSTILE.distorts
    assert under("observed").payout().headers["X-Request-Id"] == "req_00000001"


@pytest.fixture
def hostile() -> Api:
    return under("hostile")


def test_hostile_statuses_are_words_nobody_has_heard_of(hostile: Api) -> None:
    payout_id = hostile.payout().data["id"]
    hostile.intent()
    hostile.sandbox.advance(2)
    assert hostile.sync(payout_id)["status"] == "under_review"
    assert hostile.listed_intent()["active_attempt"]["status"] == "under_review"
    hostile.sandbox.advance(3)
    final = hostile.sync(payout_id)
    assert (final["status"], final["completed_at"] is not None) == ("settled", True)
    assert hostile.get("/payouts?status=completed").data[0]["id"] == payout_id


def test_hostile_records_carry_unknown_fields_nulls_and_bare_codes(hostile: Api) -> None:
    given = {"icon_url": "mine", "country": {"code": "x"}}
    payout = hostile.payout(metadata=given, description="rent").data
    assert payout["x_later"] == payout["amount"]["x_later"] != {}
    assert (payout["method"], payout["instrument"]["country"]) == ("mtn_bj", "BJ")
    assert (payout["description"], payout["amount"]["formatted"]) == (None, None)
    assert payout["metadata"] == given
    assert payout["amount"]["value"] == 50


def test_hostile_rates_are_numbers_for_objects_and_objects_for_numbers(hostile: Api) -> None:
    assert hostile.payout().data["exchange_rate"] == 1
    created = hostile.intent().data["active_attempt"]["exchange_rate"]
    assert Decimal(created["value"]) == 1
    assert hostile.listed_intent()["active_attempt"]["exchange_rate"] == 1


def test_hostile_answers_have_200_for_201_and_no_request_id(hostile: Api) -> None:
    got = hostile.payout(idempotency_key="key-00001")
    again = hostile.payout(idempotency_key="key-00001")
    assert (got.status, again.status, again.replayed) == (200, 200, True)
    assert "X-Request-Id" not in got.headers


@pytest.mark.parametrize(
    "switch",
    [
        {"extra_fields": True},
        {"null_fields": True},
        {"bare_codes": True},
        {"swapped_rates": True},
        {"shown_statuses": {"pending": "waiting"}},
    ],
    ids=lambda switch: next(iter(switch)),
)
def test_each_switch_changes_bodies_by_itself(switch: dict[str, Any]) -> None:
    plain = under("observed").payout(customer={"email": "a@b.test"}).json
    assert under(attrs.evolve(OBSERVED, **switch)).payout(customer={"email": "a@b.test"}).json != plain


def test_lists_of_texts_survive_distortion(hostile: Api) -> None:
    hostile.intent(scenario="action:approve_on_phone")
    action = hostile.listed_intent()["active_attempt"]["next_action"]
    assert action["instructions"][0] == "Dial the code."


def test_errors_keep_their_shape_under_every_profile(hostile: Api) -> None:
    got = hostile.payout(amount=0)
    assert (got.status, set(got.json), set(got.json["errors"])) == (422, {"message", "errors"}, {"amount"})


def test_the_page_size_is_the_profiles() -> None:
    api = under(attrs.evolve(OBSERVED, page_size=2, max_page_size=3))
    for _ in range(4):
        api.payout()
    assert [len(api.get(path).data) for path in ("/payouts", "/payouts?per_page=3")] == [2, 3]
    assert api.get("/payouts?per_page=4").status == 422
