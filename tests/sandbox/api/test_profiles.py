"""Gap profiles: what changes where the interface is silent."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from payments_async.sandbox import HOSTILE, OBSERVED, Profile, Sandbox, VirtualClock
from tests.sandbox.raw_requests import BY_CARD, INTENT, PAYOUT, Api


def under(profile: Profile | str) -> Api:
    sandbox = Sandbox(profile=profile, clock=VirtualClock.frozen())
    return Api(sandbox, sandbox.api_key)


def test_a_profile_is_chosen_by_name_or_value() -> None:
    assert under("hostile").payout().status == under(HOSTILE).payout().status == 200
    with pytest.raises(ValueError, match="observed, strict, alternate, hostile"):
        Sandbox(profile="friendly")


def test_the_observed_profile_distorts_nothing() -> None:
    assert not OBSERVED.distorts
    assert HOSTILE.distorts
    assert under("observed").payout().headers["X-Request-Id"] == "req_00000001"


@pytest.fixture
def hostile() -> Api:
    return under("hostile")


def test_hostile_statuses_are_unknown_words(hostile: Api) -> None:
    payout_id = hostile.payout().data["id"]
    hostile.intent(attempt=BY_CARD)
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


def test_alternate_takes_a_large_page_for_its_largest() -> None:
    api = under("alternate")
    assert api.get("/payouts?per_page=100").json["pagination"]["per_page"] == 50
    assert api.get("/payouts").json["pagination"]["per_page"] == 25
    assert api.get("/payouts?per_page=0").status == 422


@pytest.mark.parametrize(("profile", "kept"), [("observed", None), ("hostile", ""), ("alternate", "text")])
def test_the_last_page_ends_in_the_profiles_way(profile: str, kept: str | None) -> None:
    api = under(profile)
    empty = api.get("/payouts").json["pagination"]
    assert (empty.get("next_cursor") or None, empty["has_more_pages"]) == (None, False)
    api.payout()
    last = api.get("/payouts").json["pagination"]
    assert last["has_more_pages"] is False
    if kept == "text":
        assert api.get(f"/payouts?cursor={last['next_cursor']}").data == []
    else:
        assert last["next_cursor"] == kept


def test_strict_refuses_a_query_name_that_is_none_of_its_own() -> None:
    assert under("observed").get("/payouts?reference=r-1").status == 200
    got = under("strict").get("/payouts?reference=r-1&status=pending")
    assert (got.status, set(got.json["errors"])) == (422, {"reference"})
    assert (
        under("strict").get("/payment/intents?created_at[gte]=2026-01-01&cursor=&channel=api").status == 200
    )


def test_strict_requires_more_fields_where_their_parent_is_given() -> None:
    api = under("strict")
    assert api.payout(reference="r-1").status == 201
    bare = {name: value for name, value in PAYOUT["instrument"].items() if name != "type"}
    got = api.payout(instrument=bare)
    assert got.json["errors"] == {
        "instrument": {"type": ["The instrument.type field is required."]},
        "reference": ["The reference field is required."],
    }
    assert set(api.checkout().json["errors"]) == {"customer", "return_url"}
    assert set(api.checkout(return_url="https://a.test", customer={}).json["errors"]["customer"]) == {"email"}
    assert api.post("/payment/intents", {"amount": 1, "currency": "EUR"}).status == 201
    assert set(api.intent().json["errors"]["attempt"]) == {"phone"}


NO_ADDRESSES = (
    "shop.test/back",
    "/back",
    "javascript:alert(1)",
    "ftp://shop.test/back",
    "http://",
    "https://?a=b",
    "http://[::1",
    "https://shop.test:port/",
    "https://shop.test/a b",
    "https://shop.test/a\n",
    " https://shop.test/",
    "https:\\\\shop.test",
    "",
)


@pytest.mark.parametrize("given", NO_ADDRESSES)
def test_only_strict_refuses_what_is_no_web_address(given: str) -> None:
    for profile, refused in (("observed", set()), ("alternate", set()), ("strict", {"webhook_url"})):
        got = under(profile).payout(reference="r-1", webhook_url=given)
        assert set(got.json.get("errors", {})) == refused, profile
    page = {"customer": {"email": "a@b.test"}, "webhook_url": "https://merchant.test/hook"}
    assert set(under("strict").checkout(return_url=given, **page).json["errors"]) == {"return_url"}


@pytest.mark.parametrize(
    ("amount", "currency", "fits"),
    [
        ("10.5", "XOF", False),
        ("10.0", "XOF", True),
        ("1E+2", "JPY", True),
        ("10", "JPY", True),
        ("10.50", "USD", True),
        ("10.500", "USD", True),
        ("10.501", "USD", False),
        ("1.0000000000000000000000000000000000001", "USD", False),
        ("10.505", "KWD", True),
        ("10.5051", "KWD", False),
        ("10.505", "X X", False),
    ],
)
def test_only_strict_refuses_amounts_finer_than_their_currency(
    amount: str, currency: str, fits: bool
) -> None:
    for profile, status in (("observed", 201), ("alternate", 200), ("strict", 201 if fits else 422)):
        body = json.dumps({**PAYOUT, "reference": "r-1", "amount": "?", "currency": currency}).encode()
        got = under(profile).post("/payouts", body.replace(b'"?"', amount.encode(), 1))
        assert (got.status, set(got.json.get("errors", {}))) == (
            status,
            {"amount"} if status == 422 else set(),
        )


@pytest.mark.parametrize(
    ("number", "name", "fits"),
    [
        ("+225 0700000009", "'t Hart", True),
        ("+2250700000009\u200e", "A", False),
        ("+2250700000009 ", "A", False),
        ("'+2250700000009", "A", False),
        ("=1", "A", False),
    ],
)
def test_only_strict_refuses_an_account_that_is_none(number: str, name: str, *, fits: bool) -> None:
    instrument = {"type": "phone", "phone_number": number, "account_name": name, "country": "CI"}
    for profile, status in (("observed", 201), ("strict", 201 if fits else 422)):
        got = under(profile).payout(reference="r-1", instrument=instrument)
        told = set(got.json.get("errors", {}).get("instrument", {}))
        assert (got.status, told) == (status, {"phone_number"} if status == 422 else set())


def test_errors_inside_a_wrong_parent_keep_their_dotted_name_when_nested() -> None:
    instrument = {"type": "phone", "phone_number": 1}
    got = under("strict").payout(reference="r", instrument=instrument, customer={"country": 5})
    assert set(got.json["errors"]["instrument"]) == {"country", "phone_number"}
    both = {"country_code": "BJ", "phone": {"number": ""}}
    errors = (
        under("strict")
        .checkout(return_url="https://a.test", customer={"email": "a@b.test"}, restriction=both)
        .json["errors"]
    )
    assert set(errors) == {"restriction", "restriction.phone.number"}


def test_alternate_says_one_text_for_each_wrong_field() -> None:
    assert under("alternate").payout(amount=0).json["errors"] == {
        "amount": "The amount field must be at least 1."
    }


def test_alternate_answers_are_sparing() -> None:
    api = under("alternate")
    made = api.payout()
    assert (made.status, set(made.json)) == (200, {"data"})
    assert "failure" not in made.data
    assert "exchange_rate" not in made.data
    assert made.data["instrument"]["country"] == "BJ"
    assert "completed_at" not in api.intent().data


def test_alternate_stores_no_refusals_and_replays_a_reused_key() -> None:
    api = under("alternate")
    assert api.payout(idempotency_key="key-00001", amount=0).status == 422
    made = api.payout(idempotency_key="key-00001")
    assert (made.status, made.replayed) == (200, False)
    again = api.payout(idempotency_key="key-00001", amount=51)
    assert (again.answer.body, again.replayed) == (made.answer.body, True)
    assert api.payout(idempotency_key="short").status == 400


def test_strict_refuses_a_reused_key_as_invalid_and_stores_refusals() -> None:
    api = under("strict")
    assert api.payout(idempotency_key="key-00001", amount=0).status == 422
    got = api.payout(idempotency_key="key-00001", reference="r-1")
    assert (got.status, set(got.json["errors"])) == (422, {"X-Idempotency-Key"})


def test_strict_answers_409_while_the_first_request_is_under_way() -> None:
    api = under("strict")
    fields = {"idempotency_key": "key-00001", "reference": "r-1"}
    assert api.payout(**fields, scenario="slow:30s").status == 201
    assert api.payout(**fields).status == 409
    assert api.payout(**fields, scenario="slow:60s").status == 409, "which holds the key no longer"
    api.sandbox.advance(30)
    assert (api.payout(**fields).status, api.payout(**fields).replayed) == (201, True)
    assert len(api.sandbox.books.payouts()) == 1


def test_strict_limits_refund_availability_in_minutes_that_slide() -> None:
    api = under("strict")
    path = f"/payment/intents/{api.post('/payment/intents', INTENT).data['id']}/refunds/availability"
    api.sandbox.advance(30)
    assert [api.get(path).status for _ in range(101)] == [200] * 100 + [429]
    api.sandbox.advance(59)
    assert api.get(path).status == 429
    api.sandbox.advance(1)
    assert api.get(path).status == 200


def test_alternate_has_no_retry_after() -> None:
    got = under("alternate").get("/payouts", scenario="429:7")
    assert got.status == 429
    assert not {"Retry-After", "X-RateLimit-Limit", "X-Request-Id"} & set(got.headers)
