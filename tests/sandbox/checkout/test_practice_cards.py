"""Card practice: test numbers decide the outcome, any other number is refused and kept nowhere."""

from __future__ import annotations

import logging

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from tests.sandbox.checkout.test_attempt_pages import Payer as Returning
from tests.sandbox.checkout.test_pages import CARD_PAID, Read, ask, named, title, visit
from tests.sandbox.raw_requests import Api, LoggedExchange

CARD = "sandbox_card"
REAL = "5105 1051 0510 5100"
"""As good as real: it is not on the page."""

ARABIC = {ord("0") + digit: 0x660 + digit for digit in range(10)}
INSPECTOR = ("", "payments", "api/journal", "api/requests", "api/payments?reveal=1")
NEVER = "Never type a real card here"
CARDS = {
    "4242 4242 4242 4242": ("Paid", "Payment complete"),
    "4000 0000 0000 0002": ("Declined", "The payment was declined."),
    "4000 0000 0000 0069": ("Expired card", "The card has expired."),
    "4000 0000 0000 9995": ("Insufficient funds", "There is not enough money in the account."),
}


@pytest.mark.parametrize("at", ["checkout", "provider", "merchant"])
@pytest.mark.parametrize("number", CARDS)
def test_the_number_decides_what_becomes_of_the_payment(api: Api, at: str, number: str) -> None:
    label, said = CARDS[number]
    typed = named(CARD, {**CARD_PAID, "number": number})
    if at == "checkout":
        payer = visit(api)
        assert f">{number} – {label}<" in payer.look()
        payer.send(**{**payer.form_for(CARD), **typed})
        page = payer.look("/payment")
    elif at == "provider":
        payer = ask(api, "complete_with_sdk")
        payer.send("/provider", **{**payer.form("/provider"), **typed}, answer="approve")
        page = payer.look("/payment")
    else:
        returning = Returning(api, "complete_with_sdk")
        form = Read(returning.get("provider").body.decode()).filled
        returning.send("provider", **{**form, **typed}, answer="approve")
        page = returning.get("payment").body.decode()
    paid = label == "Paid"
    assert (said if paid or at != "merchant" else "Payment failed") in page
    assert api.sandbox.books.collected("XOF") == (50 if paid else 0)
    attempt = api.listed_intent()["active_attempt"]
    assert attempt["status"] == ("completed" if paid else "failed")


@pytest.mark.parametrize("number", [REAL, "4242", "4242424242424242", ""])
def test_only_a_number_of_the_list_is_taken(api: Api, number: str) -> None:
    payer, waiting = visit(api), ask(api, "complete_with_sdk")
    typed = named(CARD, {"number": number})
    pages = (
        payer.send(**{**payer.form_for(CARD), **typed}),
        waiting.send("/provider", **{**waiting.form("/provider"), **typed}, answer="approve"),
    )
    for answer in pages:
        page = answer.body.decode()
        assert "Choose a test number" in page.partition("<fieldset")[0] + page.partition("<dl")[2]
        assert Read(page).filled[f"{CARD}-number"] == next(iter(CARDS)), "the first of the list"
    assert title(pages[0].body.decode()).startswith("Error: ")
    assert (payer.attempts, waiting.payment["status"]) == (1, "pending")


def test_a_number_that_may_be_real_is_in_no_page_journal_or_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    plain = REAL.replace(" ", "")
    secret = named(CARD, {"number": REAL})
    with Sandbox(clock=VirtualClock.frozen()) as sandbox:
        api = Api(sandbox, sandbox.api_key)
        payer, waiting = visit(api), ask(api, "complete_with_sdk")
        answers = [
            payer.send(**{**payer.form_for(CARD), **secret}),
            payer.send(**{**payer.form_for(CARD), **secret, "method": "sandbox_mobile"}),
            payer.pay("sandbox_mobile", phone=REAL),
            payer.send(**{**payer.form_for("sandbox_bank"), **secret}),
            waiting.send("/provider", **{**waiting.form("/provider"), **secret}, answer="approve"),
            waiting.send("/provider", **{**waiting.form("/provider"), **secret}, answer="decline"),
        ]
        assert [answer.status for answer in answers] == [200, 200, 200, 303, 200, 303]
        paths = [f"/_sandbox/{path}" for path in INSPECTOR]
        paths += [each.path(part) for each in (payer, waiting) for part in ("", "/payment", "/provider")]
        answers += [sandbox.handle("GET", path) for path in paths]
        bodies = [
            (entry.item.body, entry.item.answer)
            for entry in sandbox.entries()
            if isinstance(entry.item, LoggedExchange)
        ]
        assert bodies
        kept = [repr(bodies), repr(sandbox.entries()), repr(sandbox.requests), caplog.text]
    for text in [*kept, *(f"{answer.headers}{answer.body.decode()}" for answer in answers)]:
        assert not any(part in text for part in (REAL, plain))


@pytest.mark.parametrize(
    ("typed", "card", "as_phone"),
    [
        (REAL, True, True),
        ("Ama Mensah 5105-1051 0510.5100 11/29 987", True, True),
        ("378282246310005", True, True),
        ("+378282246310005", True, False),
        ("30569309025904", True, False),
        ("5105105105105101", False, False),  # its check digit is wrong
        ("1105105105105103", False, False),  # no card begins so
        ("12/34", False, False),
        ("", False, False),
    ],
)
def test_a_card_is_known_by_length_beginning_and_check_digit(
    api: Api, typed: str, card: bool, as_phone: bool
) -> None:
    for fields, known in (({"payer_name": typed}, card), ({"phone": typed}, as_phone)):
        payer = visit(api)
        method = "sandbox_mobile" if "phone" in fields else "sandbox_bank_transfer"
        page = payer.pay(method, **fields).body.decode()
        assert (NEVER in page.partition("<fieldset")[0]) is known


@pytest.mark.parametrize(
    ("method", "field", "typed", "said"),
    [
        ("sandbox_mobile", "phone", REAL, NEVER),
        ("sandbox_mobile", "phone", "3782 822463 10005", NEVER),
        ("sandbox_mobile_code", "phone", REAL.translate(ARABIC), NEVER),
        ("sandbox_bank_transfer", "payer_name", f"Ama {REAL}", NEVER),
    ],
)
def test_a_card_in_any_other_field_is_refused_and_not_shown_again(
    api: Api, method: str, field: str, typed: str, said: str
) -> None:
    payer = visit(api)
    form = {**payer.form_for(method), **named(method, {field: typed})}
    page = payer.send(**form).body.decode()
    assert said in page.partition("<fieldset")[0]
    assert Read(page).filled[f"{method}-{field}"] == ""
    assert payer.attempts == 0
