"""The hosted checkout behind `checkout.url`: its pages as answers (docs/interface.md, What the service does).

What a browser makes of them is tested in tests/browser.
"""

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
from tests.sandbox.raw_requests import Api

SHOP = "https://shop.test/back?order=7#done"
PROJECT = Path(__file__).parents[3]
BALANCE = "sandbox_wallet_balance"
METHODS = {
    "approve_on_phone": "sandbox_mobile",
    "collect_otp": "sandbox_mobile_code",
    "complete_with_sdk": "sandbox_card",
    "scan_qr_code": "sandbox_wallet",
    "redirect_to_url": "sandbox_bank",
    "embed_iframe": "sandbox_bank_window",
    "display_payment_instructions": "sandbox_bank_transfer",
    "none": BALANCE,
}
PLACE = {
    "redirect_to_url": "bank",
    "display_payment_instructions": "bank",
    "embed_iframe": "frame",
    "approve_on_phone": "phone",
    "scan_qr_code": "phone",
    "complete_with_sdk": "provider",
}


class Read(HTMLParser):
    """What a page offers: fields, radios, options, buttons, links, and every address that it would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.hidden: dict[str, str] = {}
        self.radios: list[str] = []
        self.ticked: list[str] = []
        self.countries: list[str] = []
        self.filled: dict[str, str] = {}
        """What a browser would send of a form that is left as it is, but for its buttons."""
        self.buttons = 0
        self.select = ""
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if values.get("type") == "hidden":
            self.hidden[values["name"]] = values["value"]
        if values.get("type") == "radio":
            self.radios.append(values["value"])
            self.ticked += [values["value"]] if "checked" in values else []
        if tag == "select":
            self.select = values["name"]
        if tag == "option":
            self.countries += [values["value"]] if self.select == "country" else []
            if "selected" in values or self.select not in self.filled:
                self.filled[self.select] = values["value"]
        if tag == "input" and (values.get("type") != "radio" or "checked" in values) and "name" in values:
            self.filled[values["name"]] = values.get("value", "")
        if tag == "button":
            self.buttons += 1
        if tag == "a":
            self.links.append(values["href"])
        if tag == "link" or "src" in values:
            self.fetched.append(values.get("src") or values["href"])


@attrs.frozen
class Payer:
    """Somebody with a browser at one session's pages."""

    api: Api
    session_id: str

    def path(self, part: str = "") -> str:
        return f"/checkout/{self.session_id}{part}"

    def get(self, part: str = "") -> Answer:
        return self.api.sandbox.handle("GET", self.path(part))

    def look(self, part: str = "") -> str:
        answer = self.get(part)
        assert answer.status == 200
        return answer.body.decode()

    def form(self, part: str = "") -> dict[str, str]:
        return Read(self.look(part)).filled

    def send(self, part: str = "", headers: dict[str, str] | None = None, /, **fields: str) -> Answer:
        return self.api.sandbox.handle("POST", self.path(part), headers, urlencode(fields).encode())

    def form_for(self, method: str = BALANCE, country: str = "BJ") -> dict[str, str]:
        """The form that pays with a method."""
        return self.form(f"?country={country}&method={method}&retry=1")

    def pay(self, method: str = BALANCE, **typed: str) -> Answer:
        return self.send(**{**self.form_for(method), **named(method, typed)})

    def answer(self, place: str, answer: str = "approve") -> Answer:
        """Approve or decline where the payment waits."""
        card = named("sandbox_card", CARD_PAID) if place == "provider" else {}
        return self.send(f"/{place}", **{**self.form(f"/{place}"), **card}, answer=answer)

    @property
    def step(self) -> str:
        """What a form made now is good for."""
        found = re.search('data-step="([^"]+)"', self.look())
        assert found is not None
        return found[1]

    @property
    def payment(self) -> Any:
        return self.api.listed_intent()

    @property
    def attempts(self) -> int:
        return len(self.api.sandbox.books.payments()[-1].attempts)

    @property
    def collected(self) -> Any:
        return self.api.sandbox.books.collected("XOF")

    @property
    def code(self) -> str:
        found = re.search(r"<b>(\d{6})</b>", self.look("/phone"))
        assert found is not None
        return found[1]


CARD_PAID = {"number": "4242 4242 4242 4242"}


def named(method: str, typed: dict[str, str]) -> dict[str, str]:
    """What is typed for a method, by the names of its fields in the form."""
    return {f"{method}-{name}": value for name, value in typed.items()}


def visit(api: Api, scenario: str | None = None, **fields: Any) -> Payer:
    if scenario is not None:
        fields["metadata"] = {"sandbox_scenario": scenario}
    return Payer(api, api.checkout(**fields).data["checkout"]["id"])


def ask(api: Api, action: str, **fields: Any) -> Payer:
    """A payer who is asked for this action: by a method, or by the scenario where none does."""
    if action == "complete_with_sdk":
        payer = visit(api, f"action:{action}", **fields)
        payer.pay()
    else:
        payer = visit(api, **fields)
        payer.pay(METHODS[action], phone="+22990000042", payer_name="Ada")
    return payer


def title(page: str) -> str:
    found = re.search("<title>(.*)</title>", page)
    assert found is not None
    return html.unescape(found[1])


@pytest.mark.fact("endpoint.checkouts.redirect-to-url")
async def test_the_checkout_url_serves_the_hosted_page_to_whoever_opens_it() -> None:
    async with Sandbox() as sandbox, aiohttp.ClientSession() as browser:
        data = Api(sandbox, sandbox.api_key).checkout(amount=50, currency="EUR").data
        url = data["checkout"]["url"]
        async with browser.get(url) as response:
            assert (response.status, response.content_type) == (200, "text/html")
            assert "EUR\N{NO-BREAK SPACE}50.00" in await response.text()
        async with browser.head(url) as response:
            assert (response.status, await response.read()) == (200, b"")
        async with browser.get(f"{url}?country=BJ&method={BALANCE}") as response:
            form = Read(await response.text()).filled
        async with browser.post(url, data=form) as response:
            assert (response.status, response.history[0].status) == (200, 303)
            assert "Payment complete" in await response.text()
        assert sandbox.books.collected("EUR") == 50


def test_it_shows_what_is_paid_to_whom_and_until_when(api: Api) -> None:
    payer = visit(api, amount=1250.5, currency="USD", description="Two tickets", appearance={"brand": "Ada"})
    page = payer.look()
    for shown in (
        "USD\N{NO-BREAK SPACE}1,250.50",
        "Two tickets",
        "Ada",
        "1 Jan 2026, 01:00 UTC",
        "no real money moves",
    ):
        assert shown in page


def test_a_payer_chooses_and_pays_on_one_page(api: Api) -> None:
    payer = visit(api)
    page = Read(payer.look())
    assert page.countries == ["", "BJ", "CI", "FR", "GH", "KE", "NG", "SN"]  # by name
    assert set(page.radios) == set(METHODS.values())
    assert page.ticked == []
    sent = {
        **page.filled,
        "country": "BJ",
        "method": "sandbox_mobile",
        "sandbox_mobile-phone": "+229 90-00.00 (00)",
    }
    assert payer.send(**sent).headers["Location"] == payer.path("/payment")
    active = payer.payment["active_attempt"]
    assert active["next_action"]["type"] == "approve_on_phone"
    attempt = payer.api.sandbox._core.world.tenants[payer.api.key].attempts[active["id"]]
    assert (attempt.method, attempt.country, attempt.phone) == ("sandbox_mobile", "BJ", "+22990000000")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"country": ""}, ["Choose a country"]),
        ({"country": "XX"}, ["Choose a country"]),
        ({"method": "gold"}, ["Choose a way to pay"]),
        ({"method": "", "country": ""}, ["Choose a country", "Choose a way to pay"]),
        ({"country": "", "sandbox_mobile-phone": ""}, ["Choose a country", "Enter your phone number"]),
    ],
)
def test_what_is_not_chosen_is_asked_for_and_the_rest_kept(
    api: Api, given: dict[str, str], said: list[str]
) -> None:
    payer = visit(api)
    form = {**payer.form_for("sandbox_mobile"), "sandbox_mobile-phone": "+22990000000", **given}
    page = payer.send(**form).body.decode()
    assert title(page).startswith("Error: ")
    assert [page.count(text) for text in said] == [2] * len(said)
    for field in Read(page).links[: len(said)]:
        assert f'id="{field[1:]}"' in page
    kept = Read(page)
    assert kept.filled["sandbox_mobile-phone"] == form["sandbox_mobile-phone"]
    assert kept.ticked == (["sandbox_mobile"] if form["method"] == "sandbox_mobile" else [])
    assert kept.filled["country"] == ("BJ" if form["country"] == "BJ" else "")
    assert payer.attempts == 0


@pytest.mark.parametrize(
    ("currency", "customer", "country"),
    [
        ("KES", {"country": "sn"}, "SN"),
        ("NGN", {"country": "US"}, ""),
        ("GHS", None, ""),
    ],
)
def test_the_merchant_suggests_the_payers_country(
    api: Api, currency: str, customer: Any, country: str
) -> None:
    page = visit(api, currency=currency, customer=customer).look()
    assert Read(page).filled["country"] == country


@pytest.mark.parametrize(
    ("method", "typed", "said"),
    [
        ("sandbox_mobile", {}, "Enter your phone number"),
        ("sandbox_mobile", {"phone": "12345"}, "7 to 15 digits"),
        ("sandbox_mobile", {"phone": "call me"}, "7 to 15 digits"),
        ("sandbox_bank_transfer", {"payer_name": " "}, "Enter the name on the account"),
        ("sandbox_bank_transfer", {"payer_name": "x" * 101}, "100 characters or fewer"),
    ],
)
def test_what_is_typed_wrongly_is_said_beside_it_and_kept(
    api: Api, method: str, typed: dict[str, str], said: str
) -> None:
    payer = visit(api)
    answer = payer.pay(method, **typed)
    page = answer.body.decode()
    assert answer.status == 200
    assert page.count(said) == 2
    assert 'aria-invalid="true"' in page
    assert title(page).startswith("Error: ")
    for name, text in named(method, typed).items():
        assert Read(page).filled[name] == text
    assert payer.attempts == 0


def test_a_session_locked_to_a_country_offers_no_other(api: Api) -> None:
    payer = visit(api, restriction={"country_code": "de"})
    page = payer.look("?country=BJ")
    assert "Germany" in page
    assert Read(page).countries == []
    payer.pay()
    attempts = api.sandbox._core.world.tenants[api.key].attempts.values()
    assert [attempt.country for attempt in attempts] == ["DE"]


def test_a_session_locked_to_a_phone_uses_it_and_offers_what_does(api: Api) -> None:
    payer = visit(api, restriction={"phone": {"number": "+22990000042", "country": "BJ"}})
    page = payer.look()
    assert set(Read(page).radios) == {"sandbox_mobile", "sandbox_mobile_code"}
    assert "+22990000042" in page
    assert "tel" not in re.findall('type="(.*?)"', page)
    assert Read(page).ticked == []
    payer.pay("sandbox_mobile", phone="+15550000000")
    attempts = api.sandbox._core.world.tenants[api.key].attempts.values()
    assert [attempt.phone for attempt in attempts] == ["+22990000042"]


def test_a_phone_without_its_country_leaves_the_country_to_choose(api: Api) -> None:
    payer = visit(api, restriction={"phone": {"number": "+22990000042"}})
    assert set(Read(payer.look()).countries) == {"", "BJ", "CI", "FR", "GH", "KE", "NG", "SN"}


def test_the_look_of_the_session_shows(api: Api) -> None:
    page = visit(api, appearance={"color": "fe0", "brand": "école", "lang": "fr-FR"}).look()
    assert "--accent:#ffee00;--on-accent:#000000" in page
    assert '<bdi lang="fr-FR">école</bdi>' in page
    assert ">É</span>" in page
    assert "Powered by" in page
    plain = visit(api, appearance={"display_platform_badge": False, "lang": "<x>", "brand": "  "}).look()
    assert "--accent:#1f6feb;--on-accent:#ffffff" in plain
    assert '<html lang="en">' in plain
    assert "Merchant" in plain
    assert "Powered by" not in plain


@pytest.mark.parametrize(
    ("icon", "origin"),
    [
        ("http://127.0.0.1:8000/logo.svg?x='", "http://127.0.0.1:8000"),
        ("http://LOCALHOST/logo.svg", "http://localhost"),
        ("http://127.0.0.1:port/logo.svg", None),
        ("http://127.0.0.1.shop.test/logo.svg", None),
        ("http://127.0.0.1@shop.test/logo.svg", None),
        ("ftp://127.0.0.1/logo.svg", None),
        ("https://shop.test/logo.svg", None),
        ("http://sandbox.test/logo.svg", "http://sandbox.test"),
        ("//127.0.0.1/logo.svg", None),
        ("http://shop.test/logo.svg; script-src *", None),
        ({"url": 1}, None),
    ],
)
def test_an_icon_on_this_machine_is_fetched_and_its_origin_alone_allowed(
    api: Api, icon: Any, origin: str | None
) -> None:
    made = api.checkout(appearance={"icon_url": icon})
    if not isinstance(icon, str):
        assert made.status == 422
        return
    answer = Payer(api, made.data["checkout"]["id"]).get()
    assert policy_of(answer)["img-src"] == (f"'self' {origin}" if origin else "'self'")
    assert (icon in Read(answer.body.decode()).fetched) == bool(origin)


@pytest.mark.parametrize("field", ["description", "brand", "phone", "return_url"])
def test_texts_of_a_request_are_shown_and_never_markup(api: Api, field: str) -> None:
    nasty = "https://x/\"'><script>alert(1)</script>{{title}}&amp;"
    fields: dict[str, Any] = {field: nasty}
    if field == "brand":
        fields = {"appearance": {"brand": nasty}}
    if field == "phone":
        fields = {"restriction": {"phone": {"number": nasty, "country": "BJ"}}}
    payer = visit(api, **fields)
    pages = [payer.look()]
    if field == "return_url":
        payer.pay()
        pages.append(payer.look("/payment"))
    for page in pages:
        assert "<script>" not in page
        assert nasty not in page
        assert Read(page).fetched == Read(payer.look("/phone")).fetched
    assert field == "return_url" or nasty in html.unescape(pages[0])


def policy_of(answer: Answer) -> dict[str, str]:
    parts = (part.partition(" ") for part in answer.headers["Content-Security-Policy"].split("; "))
    return {name: sources for name, _, sources in parts}


def test_its_policy_allows_its_own_files_and_nothing_else(api: Api) -> None:
    answer = visit(api).get()
    style = re.search("<style>(.*)</style>", answer.body.decode())
    assert style is not None
    digest = b64encode(sha256(style[1].encode()).digest()).decode()
    assert policy_of(answer) == {
        "default-src": "'none'",
        "style-src": f"'self' 'sha256-{digest}'",
        **dict.fromkeys(("script-src", "connect-src", "img-src", "frame-src", "form-action"), "'self'"),
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_only_the_banks_window_and_the_phone_may_be_framed_and_only_by_us(api: Api) -> None:
    payer = visit(api)
    framed = {
        part: policy_of(payer.get(f"/{part}"))["frame-ancestors"] for part in ("frame", "bank", "phone")
    }
    assert framed == {"frame": "'self'", "bank": "'none'", "phone": "'self'"}


@pytest.mark.fact("request.payment.return_url.payer-lands", "service.return-is-not-proof")
@pytest.mark.parametrize(
    ("scenario", "status"), [(None, "completed"), ("fail:NO immediate", "pending"), ("hang", "pending")]
)
def test_the_payer_lands_on_the_return_url_whatever_the_outcome_with_nothing_added(
    api: Api, scenario: str | None, status: str
) -> None:
    payer = visit(api, scenario, return_url=SHOP)
    payer.pay()
    api.sandbox.advance(120)
    assert SHOP in Read(payer.look("/payment")).links
    assert payer.payment["status"] == status


def test_a_payer_can_turn_back_before_paying(api: Api) -> None:
    payer = visit(api, return_url=SHOP)
    page = payer.look("/cancelled")
    assert title(page).startswith("You have not paid")
    assert SHOP in Read(page).links
    assert payer.payment["status"] == "pending"
    payer.pay()
    assert payer.get("/cancelled").headers["Location"] == payer.path("/payment")


@pytest.mark.parametrize(
    ("given", "link"),
    [
        ("HTTP://shop.test/é x", "HTTP://shop.test/%C3%A9%20x"),
        ("https://shop.test/a%20b", "https://shop.test/a%20b"),
        ("https://shop.test/\r\nx", "https://shop.test/%0D%0Ax"),
        ("javascript:alert(1)//https://x", None),
        ("/back", None),
        ("https://", None),
        ("", None),
    ],
)
def test_only_a_web_address_is_landed_on(api: Api, given: str, link: str | None) -> None:
    payer = visit(api, return_url=given)
    payer.pay()
    assert Read(payer.look("/payment")).links == ([link] if link else [])


@pytest.mark.parametrize("action", sorted(PLACE))
@pytest.mark.parametrize(("answer", "status"), [("approve", "completed"), ("decline", "failed")])
def test_each_action_is_answered_at_its_own_place(api: Api, action: str, answer: str, status: str) -> None:
    payer = ask(api, action)
    assert payer.payment["active_attempt"]["next_action"]["type"] == action
    place = PLACE[action]
    for other in {"bank", "frame", "phone", "provider"} - {place}:
        assert "There is nothing waiting for you here" in payer.look(f"/{other}")
        assert payer.send(f"/{other}", **payer.form(f"/{place}"), answer="approve").status == 303
    assert payer.payment["active_attempt"]["status"] == "action_required"
    landed = payer.answer(place, answer).headers["Location"]
    assert landed == payer.path("/phone" if place == "phone" else "/payment")
    assert payer.payment["active_attempt"]["status"] == status
    assert payer.attempts == 1


def test_the_code_that_was_sent_pays_and_no_other_does(api: Api) -> None:
    payer = visit(api)
    payer.pay("sandbox_mobile_code", phone="+22990000000")
    code = payer.code
    wrong = f"{(int(code) + 1) % 10**6:06d}"
    for given, said in (
        (wrong, "This is not the code we sent"),
        (" ", "Enter the code"),
        ("é", "not the code"),
    ):
        page = payer.send(**{**payer.form("/payment"), "do": "code", "code": given}).body.decode()
        assert said in page
        assert title(page).startswith("Error: ")
    assert payer.send("/phone", **payer.form("/payment"), answer="approve").status == 303
    assert payer.collected == 0
    payer.send(**{**payer.form("/payment"), "do": "code", "code": f"{code[:3]} {code[3:]}"})
    assert payer.collected == 50


def test_a_code_is_taken_only_where_one_was_asked_for(api: Api) -> None:
    payer = visit(api)
    payer.pay("sandbox_bank")
    assert payer.send(**{**payer.form("/payment"), "do": "code"}, code="000000").status == 303
    payer.send(**{**payer.form("/payment"), "do": "pay"}, country="BJ", method=BALANCE)
    assert (payer.attempts, payer.collected) == (1, 0)


def test_what_waits_for_the_payer_can_be_cancelled_and_paid_after_all(api: Api) -> None:
    payer = visit(api)
    payer.pay("sandbox_bank")
    payer.send(**payer.form("/payment"))
    page = payer.look("/payment")
    assert title(page).startswith("You cancelled the payment")
    assert payer.payment["active_attempt"]["failure"]["code"]["value"] == "CUSTOMER_CANCELLED"
    payer.pay()
    assert (payer.collected, payer.attempts) == (50, 2)


def test_a_failed_attempt_says_why_and_can_be_tried_again(api: Api) -> None:
    payer = visit(api)
    payer.pay("sandbox_bank")
    payer.answer("bank", "decline")
    for part in ("", "/payment"):
        page = payer.look(part)
        assert title(page).startswith("The payment did not go through")
        assert "The payment was declined. You have not been charged." in page
    again = next(link for link in Read(page).links if "method=" in link)
    assert "method=sandbox_bank" in again
    page = Read(payer.look(again.removeprefix(payer.path()).replace("&amp;", "&")))
    assert (page.filled["country"], page.ticked) == ("BJ", ["sandbox_bank"])
    payer.pay()
    assert (payer.payment["status"], payer.attempts) == ("completed", 2)


def test_a_payment_under_way_is_not_shown_as_failed_and_cannot_be_paid_again_or_cancelled(api: Api) -> None:
    payer = visit(api, "complete after=5s", return_url=SHOP)
    form = payer.form_for()
    payer.send(**form)
    for part in ("", "/payment", "?country=BJ"):
        page = payer.look(part)
        assert title(page).startswith("Your payment is on its way")
        assert "fail" not in page
        assert Read(page).hidden == {}
    for step in ({"step": "0-open"}, {"step": "1-waiting"}, {"step": "1-waiting", "do": "cancel"}):
        assert payer.send(**{**form, **step}).status == 303
    assert (payer.payment["status"], payer.attempts) == ("pending", 1)
    api.sandbox.advance(5)
    assert "Payment complete" in payer.look("/payment")


def test_an_attempt_that_never_ends_is_of_unknown_outcome_and_not_a_failure(api: Api) -> None:
    payer = visit(api, "hang")
    payer.pay()
    assert payer.step == "1-waiting"
    api.sandbox.advance(60)
    assert payer.step == "1-unknown"
    page = payer.look("/payment")
    assert title(page).startswith("We do not know the outcome yet")
    assert "do not pay again" in page
    assert "fail" not in page.lower()
    assert "Paid" not in page
    assert Read(page).hidden == {}
    api.sandbox.settle(payer.payment["active_attempt"]["id"])
    assert "Payment complete" in payer.look("/payment")


def test_a_status_that_is_not_known_is_not_shown_as_a_failure(api: Api) -> None:
    payer = visit(api)
    api.sandbox._core.world.tenants[api.key].payments[-1].status = "reversed"
    assert "We do not know the outcome yet" in payer.look()


def test_a_failover_is_shown_as_what_it_is_and_never_as_a_failure(api: Api) -> None:
    payer = visit(api, "failover:2 after=5s")
    payer.pay()
    assert "another one" not in payer.look("/payment")
    for _ in range(2):
        api.sandbox.advance(5)
        page = payer.look("/payment")
        assert title(page).startswith("Your payment is on its way")
        assert "moved the payment to another one. You pay only once." in page
        assert "fail" not in page
    api.sandbox.advance(5)
    page = payer.look("/payment")
    assert "Payment complete" in page
    assert "moved the payment" in page
    assert (payer.attempts, payer.collected) == (3, 50)


@pytest.mark.parametrize("tried", [False, True])
def test_an_expired_session_says_so_and_takes_nothing(api: Api, tried: bool) -> None:
    payer = visit(api, "hang" if tried else None, return_url=SHOP)
    form = payer.form_for()
    if tried:
        payer.send(**form)
    api.sandbox.advance(3600)
    for part in ("", "/payment"):
        page = payer.look(part)
        assert title(page).startswith("This checkout has expired")
        assert (
            'ask <bdi lang="">Merchant</bdi> before you pay again' if tried else "You have not been charged"
        ) in page
        assert Read(page).hidden == {}
    assert payer.send(**form).headers["Location"] == payer.path("/payment")
    assert (payer.payment["status"], payer.attempts) == ("expired", int(tried))


def test_what_is_paid_says_so_to_whoever_opens_it_again(api: Api) -> None:
    payer = visit(api)
    payer.pay()
    assert "Payment complete" in payer.look("/payment")
    assert "Already paid" in payer.look()
    api.sandbox.refund(payer.payment["id"])
    assert "In full" in payer.look("/payment")


@pytest.mark.parametrize(("ending", "said"), [("990000", "Payment complete"), ("990001", "not enough money")])
def test_a_magic_number_decides_unless_the_creation_did(api: Api, ending: str, said: str) -> None:
    payer = visit(api)
    payer.pay("sandbox_mobile", phone=f"+229{ending}")
    api.sandbox.advance(5)
    assert said in payer.look("/payment")
    decided = visit(api, "action:approve_on_phone")
    decided.pay("sandbox_mobile", phone=f"+229{ending}")
    assert "Approve on your phone" in decided.look("/payment")


def test_what_the_payer_types_is_in_no_address_and_on_no_later_page(api: Api) -> None:
    payer = visit(api)
    landed = payer.pay("sandbox_mobile", phone="+22991827364").headers["Location"]
    assert "91827364" not in landed
    for part in ("", "/payment", "/phone"):
        assert "91827364" not in payer.look(part)


@pytest.mark.parametrize(
    "path",
    ["cs_unknown", "", "../x", "{payment}", "{session}/x", "{session}/", "assets/x", "assets/../_paper.py"],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_unknown_address_is_a_404_page(api: Api, path: str, method: str) -> None:
    made = api.checkout().data
    path = path.format(payment=made["payment"]["id"], session=made["checkout"]["id"])
    if path.endswith("/") and method == "GET":
        return  # the session's own address
    answer = api.sandbox.handle(method, f"/checkout/{path}")
    assert answer.status in ((403, 404) if path.endswith("/") else (404,))
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"


def test_a_form_without_the_sessions_token_is_refused(api: Api) -> None:
    payer, other = visit(api), visit(api)
    genuine, foreign = payer.form_for(), other.form_for()["token"]
    assert foreign != genuine["token"]
    for token in (foreign, "", "\u00e9\u20ac"):
        assert payer.send(**{**genuine, "token": token}).status == 403
    assert payer.send().status == 403
    payer.pay("sandbox_bank")
    assert payer.send("/bank", **{**payer.form("/bank"), "token": foreign}, answer="approve").status == 403
    assert payer.collected == 0


def test_what_the_page_does_not_offer_is_refused(api: Api) -> None:
    payer = visit(api)
    assert payer.send(**{**payer.form_for(), "do": "refund"}).status == 400
    payer.pay("sandbox_bank")
    assert payer.answer("bank", "maybe").status == 400
    assert payer.payment["active_attempt"]["status"] == "action_required"


@pytest.mark.parametrize(
    ("method", "part", "allowed"),
    [("DELETE", "", "GET, HEAD, POST"), ("POST", "/payment", "GET, HEAD"), ("PUT", "/payment", "GET, HEAD")],
)
def test_other_methods_are_refused(api: Api, method: str, part: str, allowed: str) -> None:
    answer = api.sandbox.handle(method, visit(api).path(part))
    assert (answer.status, answer.headers["Allow"]) == (405, allowed)


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
        assert payer.send("", headers, **payer.form_for()).status == status
        assert sandbox.books.collected("XOF") == (50 if status == 303 else 0)


def test_it_is_no_part_of_the_api_and_counts_against_no_limit() -> None:
    sandbox = Sandbox(limits=SandboxLimits(writes=1, reads=1))
    payer = visit(Api(sandbox, sandbox.api_key))
    for _ in range(20):
        payer.look()
    payer.pay()
    assert [entry.operation for entry in sandbox.requests] == ["checkouts.create"]
    assert payer.payment["status"] == "completed"
    assert sandbox.handle("GET", f"/v1{payer.path()}").status == 401


@pytest.mark.fact("versioning.description-1.0.0")
def test_the_version_followed_is_the_one_described(api: Api) -> None:
    described = (PROJECT / "docs" / "interface.md").read_text(encoding="utf-8")
    section = described.partition("\n## Versioning\n")[2].partition("\n## ")[0]
    assert re.findall(r"version (\d+\.\d+\.\d+)", section) == [INTERFACE_VERSION] == ["1.0.0"]
    assert f"Interface {INTERFACE_VERSION}." in visit(api).look()
