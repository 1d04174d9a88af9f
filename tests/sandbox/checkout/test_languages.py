"""The languages of the payer's pages: how one is found, and what it does to texts, amounts and times."""

from __future__ import annotations

import html
import re
from decimal import Decimal
from urllib.parse import urlencode, urljoin
from urllib.request import Request, urlopen

import pytest
from markupsafe import Markup

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._checkout.language import LANGUAGES, Text, language_of
from tests.sandbox.checkout.test_pages import Read, visit
from tests.sandbox.raw_requests import Api

LTR = "en", "fr", "pt"


@pytest.mark.parametrize(
    ("asked", "session", "accepted", "code"),
    [
        (None, None, "", "en"),
        (None, None, "fr", "fr"),
        (None, None, "fr-CA", "fr"),
        (None, None, "pt-BR,pt;q=0.9", "pt"),
        (None, None, "AR-eg", "ar"),
        (None, None, "de,fr;q=0.4,pt;q=0.8", "pt"),
        (None, None, "de, *;q=0.5", "en"),
        (None, None, "fr;q=0, pt ; q = 0.001", "pt"),
        (None, None, "fr;q=x,,;,é, ar;q=1.000", "ar"),
        (None, None, "frr,fra,pt;q=0.1", "pt"),
        (None, "fr-FR", "pt", "fr"),
        (None, "sw", "pt", "pt"),
        (None, 7, "pt", "pt"),
        ("ar", "fr", "pt", "ar"),
        ("<x>", "fr", "pt", "fr"),
        ("", None, "pt", "pt"),
    ],
)
def test_the_payer_the_session_and_the_browser_choose_the_language_in_this_order(
    asked: str | None, session: object, accepted: str, code: str
) -> None:
    assert language_of(asked, session, accepted=accepted).code == code


@pytest.mark.parametrize(
    ("code", "shown"),
    [("fr", "1\u202f250,75\u00a0GHS"), ("pt", "1\u00a0250,75\u00a0GHS"), ("ar", "\u200f1,250.75\u00a0GHS")],
)
def test_an_amount_is_written_as_the_language_does(code: str, shown: str) -> None:
    assert LANGUAGES[code].amount(Decimal("1250.75"), "GHS") == shown


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_amount_is_rounded(code: str) -> None:
    digits = "123456789" * 6
    shown = LANGUAGES[code].amount(Decimal(f"{digits}.{digits}"), "XOF")
    assert "".join(figure for figure in shown if figure.isdigit()) == digits * 2
    assert "0" not in LANGUAGES[code].amount(Decimal(5), "XOF")


@pytest.mark.parametrize(
    ("code", "time"),
    [
        ("en", "22 Nov 2026, 15:05 UTC"),
        ("fr", "22 nov. 2026, 15:05 UTC"),
        ("pt", "22/11/2026, 15:05 UTC"),
        ("ar", "22 نوفمبر 2026، 15:05 UTC"),
    ],
)
def test_times_are_in_words(code: str, time: str) -> None:
    assert LANGUAGES[code].time(1_795_359_959.9) == time


def test_countries_have_their_names() -> None:
    assert [LANGUAGES[code].country("KE") for code in LANGUAGES] == ["Kenya", "Kenya", "Quénia", "كينيا"]
    assert LANGUAGES["fr"].country(None) == ""
    assert LANGUAGES["fr"].country("??") == "??"


def test_values_are_escaped_and_kept_apart_from_a_text_that_runs_the_other_way() -> None:
    text, values = Text("{a} & {b}"), {"a": "<x>", "b": Markup("<b>1</b>")}
    assert {LANGUAGES[code].say(text, **values) for code in LTR} == {"&lt;x&gt; &amp; <b>1</b>"}
    assert LANGUAGES["ar"].say(text, **values) == "\u2068&lt;x&gt;\u2069 &amp; <b>1</b>"


class Browser:
    """A browser without JavaScript that asks for Arabic: it shows one page, and submits its first form."""

    def __init__(self, address: str) -> None:
        self.open(address)

    def open(self, address: str, form: dict[str, str] | None = None) -> None:
        body = urlencode(form).encode() if form is not None else None
        asked = Request(address, body, {"Accept-Language": "ar-MA, fr;q=0.5"})
        with urlopen(asked, timeout=300) as answer:
            self.address, self.page = answer.url, answer.read().decode()

    def submit(self, **typed: str) -> None:
        self.open(urljoin(self.address, self.first("action")), {**Read(self.page).hidden, **typed})

    def first(self, attribute: str) -> str:
        found = re.search(f' {attribute}="([^"]*)"', self.page)
        assert found is not None
        return html.unescape(found[1])

    def switch(self, code: str) -> None:
        """Follow the footer's link to another language."""
        (link,) = re.findall(f'<a href="([^"]+)" lang="{code}"', self.page)
        self.open(urljoin(self.address, html.unescape(link)))


def test_a_payer_pays_in_arabic_without_javascript_and_reads_on_in_french() -> None:
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        api = Api(sandbox, sandbox.api_key)
        made = api.checkout(amount=1250, currency="XOF", description="<b>").data["checkout"]
        assert made["appearance"]["lang"] == "en"
        payer = Browser(made["url"])
        assert '<html lang="ar" dir="rtl">' in payer.page
        assert "ادفع \u2068\u200f1,250\u00a0F\u202fCFA\u2069</button>" in payer.page
        assert "ساحل العاج" in payer.page
        payer.submit(country="BJ", method="sandbox_mobile", **{"sandbox_mobile-phone": "12"})
        assert "أدخل رقم هاتف من 7 إلى 15 رقمًا" in payer.page
        payer.submit(country="BJ", method="sandbox_mobile", **{"sandbox_mobile-phone": "+22990000042"})
        assert "وافق على الدفع من هاتفك" in payer.page
        payer.switch("fr")
        assert '<html lang="fr" dir="ltr">' in payer.page
        assert "Approuvez sur votre téléphone" in payer.page
        state = payer.address
        payer.open(state.replace("/payment", "/phone"))
        assert "Confirmez ce paiement" in payer.page
        payer.submit(answer="approve")
        payer.open(state)
        assert "Paiement effectué" in payer.page
        assert 'Vous avez payé 1\u202f250\u00a0F\u202fCFA à <bdi lang="">Merchant</bdi>.' in payer.page
        assert sandbox.books.collected("XOF") == 1250


def test_what_was_typed_stays_in_another_language_but_for_a_card_that_may_be_real() -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen())
    payer = visit(Api(sandbox, sandbox.api_key), "complete")
    page = payer.look("?country=BJ&method=sandbox_card")
    (target,) = re.findall('formaction="[^"?]*([^"]+)" lang="fr"', page)
    typed = {
        "country": "GH",
        "method": "sandbox_mobile",
        "sandbox_mobile-phone": "0244 12",
        "sandbox_card-number": "4000 0000 0000 0002",
    }
    real = {"sandbox_bank_transfer-payer_name": "5105105105105100"}
    answer = payer.send(html.unescape(target), **{**Read(page).filled, **typed, **real, "do": "choose"})
    shown = answer.body.decode()
    assert (answer.status, payer.attempts) == (200, 0)
    assert '<html lang="fr"' in shown
    assert {**Read(shown).filled, **typed, **dict.fromkeys(real, "")} == Read(shown).filled
    assert "5105" not in shown


def test_a_language_alone_in_the_address_chooses_nothing() -> None:
    sandbox = Sandbox(clock=VirtualClock.frozen())
    api = Api(sandbox, sandbox.api_key)
    made = api.checkout(
        appearance={"lang": "pt"}, metadata={"sandbox_scenario": "fail:INSUFFICIENT_FUNDS"}
    ).data["checkout"]
    assert made["appearance"]["lang"] == "pt"
    path = f"/checkout/{made['id']}"
    form = Read(sandbox.handle("GET", path).body.decode()).hidden
    body = urlencode({**form, "country": "BJ", "method": "sandbox_wallet_balance"}).encode()
    sent = sandbox.handle("POST", f"{path}?lang=fr", None, body)
    assert sent.headers["Location"] == f"{path}/payment?lang=fr"
    sandbox.advance(30)
    for query, heading in (("", "O pagamento não foi concluído"), ("?lang=fr", "Le paiement n’a pas abouti")):
        assert heading in sandbox.handle("GET", path + query).body.decode()
    again = sandbox.handle("GET", f"{path}?lang=fr&country=BJ").body.decode()
    assert "Comment souhaitez\u2011vous payer" in again
    assert f'formaction="{path}?country=BJ&amp;lang=ar"' in again
    assert "Saldo guardado" in sandbox.handle("GET", f"{path}?lang=&country=BJ").body.decode()
