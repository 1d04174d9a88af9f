"""The hosted page behind `checkout.url` (docs/interface.md, What the service does)."""

from __future__ import annotations

import html
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import aiohttp
import attrs
import pytest

from payments_async.sandbox import INTERFACE_VERSION, Answer, Sandbox, SandboxLimits
from tests.sandbox.api import Api

SHOP = "https://shop.test/back?order=7#done"
PROJECT = Path(__file__).parents[2]


class Forms(HTMLParser):
    """The hidden fields and the buttons of a page, and every address it would fetch or run."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}
        self.choices: list[str] = []
        self.outside: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        if tag == "input":
            self.hidden[str(values["name"])] = str(values["value"])
        if tag == "button":
            self.choices.append(str(values["value"]))
        if tag in ("script", "img", "link", "iframe", "object") or "src" in values:
            self.outside.append(tag)


@attrs.frozen
class Payer:
    """Somebody with a browser at one session's page."""

    api: Api
    session_id: str

    @property
    def path(self) -> str:
        return f"/checkout/{self.session_id}"

    def look(self) -> str:
        answer = self.api.sandbox.handle("GET", self.path)
        assert answer.status == 200
        return answer.body.decode()

    def submit(
        self, choice: str, form: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        """Press a button of the page, or of an older copy of its form."""
        fields = {**(Forms(self.look()).hidden if form is None else form), "choice": choice}
        return self.api.sandbox.handle("POST", self.path, headers, urlencode(fields).encode())

    @property
    def payment(self) -> Any:
        return self.api.listed_intent()

    @property
    def attempts(self) -> int:
        return len(self.api.sandbox.books.payments()[-1].attempts)


def visit(api: Api, scenario: str | None = None, **fields: Any) -> Payer:
    if scenario is not None:
        fields["metadata"] = {"sandbox_scenario": scenario}
    return Payer(api, api.checkout(**fields).data["checkout"]["id"])


@pytest.mark.fact("endpoint.checkouts.redirect-to-url")
async def test_the_checkout_url_serves_the_hosted_page_to_whoever_opens_it() -> None:
    async with Sandbox() as sandbox, aiohttp.ClientSession() as browser:
        data = Api(sandbox, sandbox.api_key).checkout(amount=50, currency="EUR").data
        async with browser.get(data["checkout"]["url"]) as response:
            assert (response.status, response.content_type) == (200, "text/html")
            page = await response.text()
        assert data["payment"]["amount"]["formatted"] in page
        async with browser.head(data["checkout"]["url"]) as response:
            assert (response.status, await response.read()) == (200, b"")
        pressed = {**Forms(page).hidden, "choice": "pay"}
        async with browser.post(data["checkout"]["url"], data=pressed) as response:
            assert (response.status, response.history[0].status) == (200, 303)
            assert "Paid" in await response.text()
        assert sandbox.books.collected("EUR") == 50


def test_it_shows_what_is_paid_and_offers_to_pay_or_decline(api: Api) -> None:
    payer = visit(api, amount=1250.5, currency="USD", description="Two tickets", appearance={"brand": "Ada"})
    page = payer.look()
    for shown in ("$1,250.50", "Two tickets", "Ada", "2026-01-01 01:00 UTC"):
        assert shown in page
    assert Forms(page).choices == ["pay", "decline"]
    assert "Country" not in page
    assert "Phone" not in page


@pytest.mark.parametrize(
    ("restriction", "shown"),
    [
        ({"country_code": "BJ"}, "<dt>Country</dt><dd>Benin (BJ)</dd>"),
        ({"phone": {"number": "+22990000001", "country": "BJ"}}, "<dt>Phone</dt><dd>+22990000001</dd>"),
    ],
)
def test_it_shows_what_the_session_is_restricted_to(
    api: Api, restriction: dict[str, Any], shown: str
) -> None:
    payer = visit(api, restriction=restriction)
    assert shown in payer.look()
    payer.submit("pay")
    assert payer.payment["status"] == "completed"


def test_it_wears_the_colour_of_the_session(api: Api) -> None:
    assert "--accent:#ffee00;--on-accent:#000000" in visit(api, appearance={"color": "fe0"}).look()
    assert "--accent:#1f6feb;--on-accent:#ffffff" in visit(api).look()


def test_it_has_no_script_and_fetches_nothing(api: Api) -> None:
    page = visit(api, appearance={"icon_url": "https://shop.test/icon.svg"}, return_url=SHOP).look()
    assert Forms(page).outside == []
    assert "icon.svg" not in page
    assert "@import" not in page
    assert "url(" not in page


@pytest.mark.parametrize("field", ["description", "brand", "phone", "return_url"])
def test_texts_of_a_request_are_shown_and_never_markup(api: Api, field: str) -> None:
    nasty = "https://x/\"'><script>alert(1)</script>{title}&amp;"
    fields: dict[str, Any] = {field: nasty}
    if field == "brand":
        fields = {"appearance": {"brand": nasty}}
    if field == "phone":
        fields = {"restriction": {"phone": {"number": nasty, "country": "BJ"}}}
    payer = visit(api, **fields)
    if field == "return_url":
        payer.submit("pay")
    page = payer.look()
    assert "<script" not in page
    assert field == "return_url" or html.escape(nasty) in page


def test_its_policy_allows_its_own_style_and_nothing_else(api: Api) -> None:
    payer = visit(api)
    answer = api.sandbox.handle("GET", payer.path)
    style = re.search("<style>(.*)</style>", answer.body.decode(), re.DOTALL)
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert answer.headers["Content-Security-Policy"].split("; ") == [
        "default-src 'none'",
        f"style-src 'sha256-{digest}'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
    assert answer.headers["Cache-Control"] == "no-store"


def test_its_policy_lets_the_form_lead_on_to_the_merchant(api: Api) -> None:
    answer = api.sandbox.handle("GET", visit(api, return_url=SHOP).path)
    assert "form-action 'self' http: https:;" in answer.headers["Content-Security-Policy"]


def test_without_a_return_url_the_page_shows_the_result(api: Api) -> None:
    payer = visit(api)
    answer = payer.submit("pay")
    assert (answer.status, answer.headers["Location"]) == (303, payer.path)
    page = payer.look()
    assert "Paid" in page
    assert Forms(page).choices == []
    assert payer.payment["status"] == "completed"


@pytest.mark.fact("request.payment.return_url.payer-lands", "service.return-is-not-proof")
@pytest.mark.parametrize(("choice", "status"), [("pay", "completed"), ("decline", "pending")])
def test_the_payer_lands_on_the_return_url_whatever_the_outcome_with_nothing_added(
    api: Api, choice: str, status: str
) -> None:
    payer = visit(api, return_url=SHOP)
    answer = payer.submit(choice)
    assert (answer.status, answer.headers["Location"]) == (303, SHOP)
    assert payer.payment["status"] == status


def test_a_payer_who_comes_back_after_paying_finds_the_way_to_the_merchant(api: Api) -> None:
    payer = visit(api, return_url="https://shop.test/?a=1&b=2", appearance={"brand": "Ada"})
    payer.submit("pay")
    assert '<a href="https://shop.test/?a=1&amp;b=2">Return to Ada</a>' in payer.look()


@pytest.mark.parametrize(
    ("given", "location"),
    [
        ("HTTP://shop.test/é x", "HTTP://shop.test/%C3%A9%20x"),
        ("https://shop.test/a%20b", "https://shop.test/a%20b"),
        ("https://shop.test/\r\nSet-Cookie: a=b", "https://shop.test/%0D%0ASet-Cookie:%20a=b"),
        ("javascript:alert(1)//https://x", None),
        ("/back", None),
        ("https://", None),
        ("", None),
    ],
)
def test_only_a_web_address_is_landed_on_and_none_can_break_a_header(
    api: Api, given: str, location: str | None
) -> None:
    payer = visit(api, return_url=given)
    assert payer.submit("pay").headers["Location"] == (location or payer.path)
    assert ("href" in payer.look()) is (location is not None)


def test_a_declined_payment_says_so_and_can_be_tried_again(api: Api) -> None:
    payer = visit(api)
    payer.submit("decline")
    page = payer.look()
    assert 'role="alert">The payment was not made. Customer declined. You can try again.' in page
    assert "Try again" in page
    payer.submit("pay")
    assert payer.payment["status"] == "completed"
    assert payer.attempts == 2


def test_the_scenario_of_the_creation_decides_what_pay_does(api: Api) -> None:
    payer = visit(api, scenario="fail:INSUFFICIENT_FUNDS immediate")
    payer.submit("pay")
    assert "Insufficient funds." in payer.look()


def test_an_action_keeps_the_payer_on_the_page_until_it_is_taken(api: Api) -> None:
    payer = visit(api, scenario="action:approve_on_phone", return_url=SHOP)
    assert payer.submit("pay").headers["Location"] == payer.path
    page = payer.look()
    assert "Approve the payment on your phone." in page
    assert Forms(page).choices == ["pay", "decline"]
    assert payer.submit("pay").headers["Location"] == SHOP
    assert (payer.payment["status"], payer.attempts) == ("completed", 1)


def test_a_payment_under_way_is_not_shown_as_failed_and_cannot_be_paid_again(api: Api) -> None:
    payer = visit(api, scenario="complete after=5s", return_url=SHOP)
    form = Forms(payer.look()).hidden
    assert payer.submit("pay", form).headers["Location"] == SHOP
    page = payer.look()
    assert "being processed" in page
    assert Forms(page).choices == []
    now = {**form, "step": "1-waiting"}
    assert payer.submit("pay", now).status == payer.submit("decline", now).status == 303
    assert (payer.payment["status"], payer.attempts) == ("pending", 1)
    api.sandbox.advance(5)
    assert "Paid" in payer.look()


def test_an_expired_session_says_so_and_takes_nothing(api: Api) -> None:
    payer = visit(api)
    form = Forms(payer.look()).hidden
    api.sandbox.advance(3600)
    page = payer.look()
    assert "expired" in page
    assert Forms(page).choices == []
    assert payer.submit("pay", form).status == 303
    assert (payer.payment["status"], payer.attempts) == ("expired", 0)


def test_a_refunded_payment_has_been_paid(api: Api) -> None:
    payer = visit(api)
    payer.submit("pay")
    api.sandbox.refund(payer.payment["id"])
    assert "Paid" in payer.look()


@pytest.mark.parametrize("scenario", [None, "hang", "action:collect_otp", "fail:NO immediate"])
def test_a_form_sent_twice_has_one_effect_and_one_answer(api: Api, scenario: str | None) -> None:
    payer = visit(api, scenario=scenario)
    form = Forms(payer.look()).hidden
    first = payer.submit("pay", form)
    status = payer.payment["active_attempt"]["status"]
    assert payer.submit("pay", form) == first
    assert payer.submit("decline", form) == first
    assert payer.attempts == 1
    assert payer.payment["active_attempt"]["status"] == status


def test_of_two_tabs_one_pays(api: Api) -> None:
    payer = visit(api)
    tabs = [Forms(payer.look()).hidden for _ in range(2)]
    assert [payer.submit("pay", tab).status for tab in tabs] == [303, 303]
    assert payer.attempts == 1
    assert api.sandbox.books.collected("XOF") == 50


@pytest.mark.parametrize(
    "path", ["/checkout/cs_unknown", "/checkout/", "/checkout/../x", "/checkout/{payment}"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_session_is_a_404_page(api: Api, path: str, method: str) -> None:
    payment_id = api.checkout().data["payment"]["id"]
    answer = api.sandbox.handle(method, path.format(payment=payment_id))
    assert (answer.status, answer.headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert b"No such checkout" in answer.body
    assert "form-action 'none'" in answer.headers["Content-Security-Policy"]


def test_a_form_without_the_sessions_token_is_refused(api: Api) -> None:
    payer, other = visit(api), visit(api)
    genuine = Forms(payer.look()).hidden
    foreign = Forms(other.look()).hidden["token"]
    assert foreign != genuine["token"]
    for token in (foreign, "", "\u00e9\u20ac"):
        assert payer.submit("pay", {**genuine, "token": token}).status == 403
    assert payer.submit("pay", {}).status == 403
    assert api.sandbox.books.collected("XOF") == 0


def test_a_choice_that_the_page_does_not_offer_is_refused(api: Api) -> None:
    payer = visit(api)
    assert payer.submit("refund").status == 400
    assert payer.attempts == 0


def test_other_methods_are_refused(api: Api) -> None:
    answer = api.sandbox.handle("DELETE", visit(api).path)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD, POST")


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("{own}", None, 303),
        ("{own}", "http://{own}", 303),
        ("{local}", "http://{local}", 303),
        (None, "http://{own}", 303),
        ("{own}", "http://evil.test", 403),
        ("{own}", "https://{own}", 403),
        ("{own}", "http://{local}", 403),
        ("{own}", "null", 403),
        ("evil.test", "http://evil.test", 403),
        ("localhost:1", None, 403),
        (None, "http://evil.test", 403),
    ],
)
def test_only_the_page_itself_may_send_its_form(host: str | None, origin: str | None, status: int) -> None:
    with Sandbox() as sandbox:
        own = urlsplit(sandbox.base_url).netloc
        local = own.replace("127.0.0.1", "localhost")
        given = {"Host": host, "Origin": origin}
        headers = {name: text.format(own=own, local=local) for name, text in given.items() if text}
        payer = visit(Api(sandbox, sandbox.api_key))
        assert payer.submit("pay", headers=headers).status == status
        assert sandbox.books.collected("XOF") == (50 if status == 303 else 0)


def test_it_is_no_part_of_the_api_and_counts_against_no_limit() -> None:
    sandbox = Sandbox(limits=SandboxLimits(writes=1, reads=1))
    payer = visit(Api(sandbox, sandbox.api_key))
    for _ in range(20):
        payer.look()
    payer.submit("decline")
    payer.submit("pay")
    assert [entry.operation for entry in sandbox.requests] == ["checkouts.create"]
    assert payer.payment["status"] == "completed"
    assert sandbox.handle("GET", f"/v1{payer.path}").status == 401


def test_paying_on_the_page_tells_the_webhook(api: Api) -> None:
    visit(api, webhook_url="https://shop.test/hook").submit("pay")
    events = [delivery.event for delivery in api.sandbox.deliveries]
    assert events == ["payment.attempt.completed", "payment.completed"]


@pytest.mark.fact("versioning.description-1.0.0")
def test_the_version_followed_is_the_one_described(api: Api) -> None:
    described = (PROJECT / "docs" / "interface.md").read_text(encoding="utf-8")
    section = described.partition("\n## Versioning\n")[2].partition("\n## ")[0]
    assert re.findall(r"version (\d+\.\d+\.\d+)", section) == [INTERFACE_VERSION] == ["1.0.0"]
    assert f"Interface {INTERFACE_VERSION}." in visit(api).look()
