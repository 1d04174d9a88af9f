"""The languages of the payer's pages: how one is found, and what it does to texts, amounts and times."""

from __future__ import annotations

from decimal import Decimal

import pytest
from markupsafe import Markup

from payments_async.sandbox.checkout.language import LANGUAGES, Text, language_of

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
    [
        ("fr", "1\u202f250,75\u00a0GHS"),
        ("pt", "GHS\u00a01.250,75"),
        ("ar", "\u200f1,250.75\u00a0GHS"),
    ],
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
    ("code", "time", "left"),
    [
        ("en", "22 Nov 2026, 15:05 UTC", "in 58 minutes"),
        ("fr", "22 nov. 2026, 15:05 UTC", "dans 58 minutes"),
        ("pt", "22 de nov. de 2026 15:05 UTC", "em 58 minutos"),
        ("ar", "22 نوفمبر 2026، 15:05 UTC", "خلال 58 دقيقة"),
    ],
)
def test_times_and_what_is_left_are_in_words(code: str, time: str, left: str) -> None:
    language = LANGUAGES[code]
    assert language.time(1_795_359_959.9) == {"text": time, "iso": "2026-11-22T15:05Z"}
    assert language.time_left(3_480) == left


def test_less_than_a_minute_is_still_ahead() -> None:
    assert LANGUAGES["en"].time_left(-5) == LANGUAGES["en"].time_left(20) == "in 1 minute"
    assert LANGUAGES["en"].time_left(5_400) == "in 90 minutes"


def test_countries_have_their_names() -> None:
    assert [LANGUAGES[code].country("KE") for code in LANGUAGES] == ["Kenya", "Kenya", "Quênia", "كينيا"]
    assert LANGUAGES["fr"].country(None) == ""
    assert LANGUAGES["fr"].country("??") == "??"


def test_values_are_escaped_and_kept_apart_from_a_text_that_runs_the_other_way() -> None:
    text, values = Text("{a} & {b}"), {"a": "<x>", "b": Markup("<b>1</b>")}
    assert {LANGUAGES[code].say(text, **values) for code in LTR} == {"&lt;x&gt; &amp; <b>1</b>"}
    assert LANGUAGES["ar"].say(text, **values) == "\u2068&lt;x&gt;\u2069 &amp; <b>1</b>"
