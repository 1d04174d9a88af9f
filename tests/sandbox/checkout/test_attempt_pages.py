"""The pages that `next_action` names, for merchants who show it themselves (gap K)."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from payments_async.sandbox import Answer
from tests.sandbox.checkout.test_pages import CARD_PAID, PLACE, Read, named
from tests.sandbox.raw_requests import ACTION_TYPES, Api

SHOP = "https://shop.test/back?order=7"
PLACES = {**PLACE, "collect_otp": "phone"}


class Payer:
    """Somebody at the pages of an intent's attempt; the merchant made the intent through the API."""

    def __init__(self, api: Api, kind: str, words: str = "", **fields: Any) -> None:
        self.api = api
        made = api.intent(scenario=f"action:{kind}{words}", **{"return_url": SHOP, **fields}).data
        self.attempt = made["active_attempt"]
        self.action: dict[str, Any] = self.attempt["next_action"]

    def get(self, part: str) -> Answer:
        return self.api.sandbox.handle("GET", f"/actions/{self.attempt['id']}/{part}")

    def send(self, part: str, **fields: str) -> Answer:
        body = urlencode(fields).encode()
        return self.api.sandbox.handle("POST", f"/actions/{self.attempt['id']}/{part}", {}, body)

    def answer(self, part: str, answer: str = "approve") -> Answer:
        card = named("sandbox_card", CARD_PAID) if part == "provider" else {}
        return self.send(part, **Read(self.get(part).body.decode()).hidden, **card, answer=answer)

    def code(self) -> str:
        return self.get("phone").body.decode().partition("<b>")[2].partition("</b>")[0]

    @property
    def payment(self) -> Any:
        return self.api.listed_intent()


@pytest.mark.fact("form.next-action")
@pytest.mark.parametrize("kind", ACTION_TYPES)
def test_every_address_of_a_next_action_is_a_page_of_this_sandbox(api: Api, kind: str) -> None:
    payer = Payer(api, kind)
    addresses = [
        value for value in payer.action.values() if isinstance(value, str) and value.startswith("http")
    ]
    for address in addresses:
        assert address.startswith(f"{api.sandbox.origin}/actions/{payer.attempt['id']}/")
        assert api.sandbox.handle("GET", urlsplit(address).path).status == 200
    assert bool(addresses) == (kind not in ("approve_on_phone", "display_payment_instructions"))


@pytest.mark.parametrize(("kind", "place"), PLACES.items())
def test_an_approval_pays_once_and_leads_back_to_the_merchant(api: Api, kind: str, place: str) -> None:
    payer = Payer(api, kind)
    if kind == "collect_otp":
        answer = payer.send("code", otp=payer.code())
        again = payer.send("code", otp="000000")
    else:
        form = Read(payer.get(place).body.decode()).hidden
        answer = payer.answer(place)
        again = payer.send(place, **form, answer="decline")
    assert (answer.status, again.status) == (303, 303)
    assert payer.payment["status"] == "completed"
    assert api.sandbox.books.collected("XOF") == 50
    after = payer.get("payment").body.decode()
    assert "Payment complete" in after
    assert SHOP in Read(after).links


def test_a_refusal_ends_an_intent_that_has_no_checkout(api: Api) -> None:
    payer = Payer(api, "redirect_to_url", return_url=None)
    assert "still waiting for you" in payer.get("payment").body.decode()
    form = Read(payer.get("bank").body.decode()).hidden
    payer.answer("bank", "decline")
    assert payer.payment["status"] == "failed"
    assert "You can close this page" in payer.get("payment").body.decode()
    assert payer.send("bank", **form, answer="approve").status == 303
    assert api.sandbox.books.collected("XOF") == 0


def test_a_wrong_code_changes_nothing(api: Api) -> None:
    payer = Payer(api, "collect_otp")
    wrong = f"{(int(payer.code()) + 1) % 10**6:06d}"
    assert [payer.send("code", otp=wrong).status, payer.send("code").status] == [422, 422]
    assert payer.payment["status"] == "pending"


def test_only_what_belongs_into_a_page_of_the_merchants_may_be_framed(api: Api) -> None:
    framed = {
        kind: "frame-ancestors *" in Payer(api, kind).get(place).headers["Content-Security-Policy"]
        for kind, place in PLACES.items()
    }
    assert {kind for kind, may in framed.items() if may} == {"embed_iframe", "complete_with_sdk"}


def test_the_attempt_that_failed_over_takes_no_answer_any_more(api: Api) -> None:
    payer = Payer(api, "redirect_to_url")
    form = Read(payer.get("bank").body.decode()).hidden
    with api.sandbox.changing() as world:
        world.tenants[api.key].attempts[payer.attempt["id"]].failovers_left = 1
    payer.answer("bank")
    assert payer.send("bank", **form, answer="approve").status == 405
    assert "declined or failed" not in payer.get("bank").body.decode()
    assert api.sandbox.books.collected("XOF") == 0


def test_a_sessions_payer_comes_back_to_its_checkout(api: Api) -> None:
    session = api.checkout().data["checkout"]["id"]
    api.sandbox.pay(session, outcome="action:redirect_to_url")
    address = api.get(f"/payment/checkouts/{session}").data["payment"]["active_attempt"]["next_action"]["url"]
    path = urlsplit(address).path
    form = Read(api.sandbox.handle("GET", path).body.decode()).hidden
    sent = api.sandbox.handle("POST", path, {}, urlencode({**form, "answer": "approve"}).encode())
    back = api.sandbox.handle("GET", sent.headers["Location"])
    assert (back.status, back.headers["Location"]) == (303, f"/checkout/{session}/payment")
    assert api.listed_intent()["status"] == "completed"


@pytest.mark.parametrize("path", ["pa_unknown/bank", "{id}/elsewhere", ""])
def test_there_is_nothing_elsewhere(api: Api, path: str) -> None:
    attempt = Payer(api, "redirect_to_url").attempt["id"]
    assert api.sandbox.handle("GET", f"/actions/{path.format(id=attempt)}").status == 404


def test_an_attempt_that_was_under_way_is_never_said_to_have_charged_nothing(api: Api) -> None:
    """Nobody knows the outcome of a payment that takes long, nor of one that ran out of time."""
    attempt = api.intent(scenario="expire", return_url=SHOP).data["active_attempt"]
    said = []
    for seconds in (0, 61, 90_000):
        api.sandbox.advance(seconds)
        said.append(api.sandbox.handle("GET", f"/actions/{attempt['id']}/").body.decode())
    soon, late, expired = said
    assert "Your payment is being processed." in soon
    assert "We do not know the outcome yet" in late
    assert "Please do not pay again." in late
    assert "Payment expired" in expired
    assert "If you approved the payment just before it expired, ask" in expired
    assert not any("have not been charged" in page for page in said)
