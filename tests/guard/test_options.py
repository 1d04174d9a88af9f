"""What a guard is made of: options and files that cannot be used are refused with one sentence."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from payments_async import AsyncPayments, ConfigurationError, Guard
from payments_async.guard import Sum
from tests.conftest import BASE_URL, KEY
from tests.support.jumping import JumpingRuntime

MOST = {"GHS": "5000"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "no payout could pass: name its currencies in most"),
        ({"most": {}}, "no payout could pass"),
        ({"most": "GHS"}, "most must be a mapping"),
        ({"most": {"ghs": 5}}, "no three capital letters"),
        ({"most": {"GHS": 50.0}}, "most of GHS must be decimal text, a whole number or a Decimal, not float"),
        ({"most": {"GHS": "NaN"}}, "must be decimal text"),
        ({"most": {"GHS": 10**14}}, "most of GHS is more than can be counted"),
        ({"most": {"GHS": "0.99"}}, "below 1, the least amount of a payout"),
        ({"most": MOST, "sums": "GHS"}, "sums must be a list"),
        ({"most": MOST, "sums": ["GHS"]}, "a sum is"),
        ({"most": MOST, "sums": [("GHS", "1")]}, "a sum is"),
        ({"most": MOST, "sums": [("GHS", "9000", "fortnight")]}, "window is one of minute, hour, day, week"),
        ({"most": MOST, "sums": [("GHS", "9000", 0)]}, "whole number of seconds"),
        ({"most": MOST, "sums": [("GHS", "9000", True)]}, "whole number of seconds"),
        ({"most": MOST, "sums": [("GHS", 9000.0, "day")]}, "the sum of GHS must be decimal text"),
        ({"most": MOST, "sums": [("XOF", "9000", "day")]}, "a sum of XOF, and most does not name it"),
        ({"most": MOST, "sums": [("GHS", "9000", "day"), ("GHS", "8000", 86_400)]}, "two sums of one window"),
        (
            {"most": MOST, "sums": [("GHS", "9000", "hour"), ("GHS", "8000", "day")]},
            "for one hour is above that for one day",
        ),
        ({"most": MOST, "sums": [("GHS", "4000", 90)]}, r"most of GHS \(5000\) is above its sum for 90 s"),
        ({"most": MOST, "methods": "mobile_money"}, "methods must be a list of texts"),
        ({"most": MOST, "methods": []}, "and not empty"),
        ({"most": MOST, "countries": ["Ghana"]}, "two capital letters"),
        ({"most": MOST, "countries": [7]}, "countries must be a list of texts"),
        ({"most": MOST, "decimals": 1}, "decimals must be True or False"),
        ({"most": MOST, "collecting": "yes"}, "collecting must be True or False"),
        ({"most": MOST, "other_writes": "all"}, "other_writes must be 'allow' or 'refuse'"),
        ({"most": MOST, "other_currencies": None}, "other_currencies must be"),
        ({"most": MOST, "budgets": "host"}, "budgets must be 'process'"),
        ({"most": MOST, "budgets": "process", "state": "a"}, "not both"),
        ({"most": MOST, "state": 7}, "state must be the path of a file"),
        ({"most": MOST, "state": ""}, "state must be the path of a file"),
        ({"most": MOST, "ask": "me"}, "ask must be a function"),
        ({"most": MOST, "name": ""}, "name must be printable text"),
        ({"most": MOST, "name": "a\nb"}, "name must be printable text"),
    ],
)
def test_an_option_that_cannot_be_used_is_refused_with_what_is_wrong(options: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^guard: .*{said}"):
        Guard(**options)


def test_a_guard_has_exact_figures_and_compares_by_its_rules() -> None:
    guard = Guard(
        most={"GHS": 5000}, sums=[("GHS", "9000", "day"), ("GHS", Decimal("7000"), 60)], name="june"
    )
    assert guard.most == {"GHS": Decimal(5000)}
    assert guard.sums == (Sum("GHS", Decimal(7000), 60), Sum("GHS", Decimal(9000), 86_400))
    same = Guard(most={"GHS": "5000"}, sums=[("GHS", 7000, "minute"), ("GHS", 9000, "day")], name="june")
    assert (same, hash(same), same.digest) == (guard, hash(guard), guard.digest)
    assert Guard(most={"GHS": "5001"}).digest != Guard(most={"GHS": "5000"}).digest
    moved = Guard(most={"GHS": "5000"}, ask=lambda request: True, state="elsewhere.sqlite")
    assert moved.digest == Guard(most={"GHS": "5000"}).digest


# --- Files ---

FILE = """
most = {GHS = "5000", XOF = 400000}
sums = [["GHS", "50000", "hour"]]
methods = ["mobile_money"]
countries = ["GH"]
state = "guard.sqlite"
other_writes = "allow"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "guard.toml"
    path.write_text(text)
    path.chmod(0o644)
    return path


def test_a_file_has_the_same_words_and_its_state_lies_beside_it(tmp_path: Path) -> None:
    guard = Guard.from_file(written(tmp_path, FILE))
    assert guard == Guard(
        most={"GHS": 5000, "XOF": 400_000},
        sums=[("GHS", 50_000, "hour")],
        methods=["mobile_money"],
        countries=["GH"],
        state=tmp_path / "guard.sqlite",
        other_writes="allow",
    )
    assert guard.rules()["sums"] == [("GHS", "50000", 3600)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("most = {GHS = 5000.0}", "not float"),
        ('most = {GHS = "5000"}\nmoost = 1', "unknown word: moost"),
        ('most = {GHS = "5000"}\nask = "me"', "unknown word: ask"),
        ("most = [", "is no TOML file"),
        ("\x00", "is no TOML file"),
        ("most = " + "[" * 5_000, "is no TOML file"),
        ("state = 7\nmost = {GHS = 5}", "state must be the path"),
    ],
)
def test_a_file_that_cannot_be_used_is_never_no_guard(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        Guard.from_file(written(tmp_path, text))
    assert "guard.toml" in str(caught.value)


def test_a_file_that_is_missing_or_that_others_may_change_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        Guard.from_file(tmp_path / "missing.toml")
    path = written(tmp_path, FILE)
    path.chmod(0o664)
    with pytest.raises(ConfigurationError, match=r"others than its owner may change .*664"):
        Guard.from_file(path)


def test_a_client_takes_the_file_that_the_environment_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAYMENTS_GUARD", str(tmp_path / "missing.toml"))
    with pytest.raises(ConfigurationError, match="cannot be read"):
        AsyncPayments(KEY, base_url=BASE_URL)
    monkeypatch.setenv("PAYMENTS_GUARD", "")
    with pytest.raises(ConfigurationError, match="PAYMENTS_GUARD is empty: name the guard's file, or unset"):
        AsyncPayments(KEY, base_url=BASE_URL)
    monkeypatch.setenv("PAYMENTS_GUARD", str(written(tmp_path, FILE)))
    client = AsyncPayments(KEY, base_url=BASE_URL, runtime=JumpingRuntime(), guard=Guard(most=MOST))
    assert [guard.state is None for guard in client._pipeline.settings.guards] == [True, False]


@pytest.mark.parametrize("guard", [{"most": MOST}, Guard, "guard.toml"])
def test_a_client_takes_nothing_but_a_guard(guard: Any) -> None:
    with pytest.raises(ConfigurationError, match="guard must be a Guard"):
        AsyncPayments(KEY, base_url=BASE_URL, guard=guard)


@pytest.mark.parametrize("store", [None, "redis://127.0.0.1:9/0"])
def test_sums_need_a_place_that_keeps_them(store: str | None) -> None:
    guard = Guard(most=MOST, sums=[("GHS", 9000, "day")])
    with pytest.raises(ConfigurationError, match=r"sums need a state: a file .*limit_store in PostgreSQL"):
        AsyncPayments(KEY, base_url=BASE_URL, guard=guard, limit_store=store)


def test_guards_of_one_key_that_keep_their_sums_elsewhere_are_refused(tmp_path: Path) -> None:
    sums = [("GHS", 9000, "day")]
    here = Guard(most=MOST, sums=sums, budgets="process")
    AsyncPayments(KEY, base_url=BASE_URL, guard=here)
    AsyncPayments(KEY, base_url=BASE_URL, guard=here)
    with pytest.raises(ConfigurationError, match="different places"):
        AsyncPayments(KEY, base_url=BASE_URL, guard=Guard(most=MOST, sums=sums, state=tmp_path / "a"))


def test_a_currency_that_the_standard_gives_no_decimals_is_a_warning() -> None:
    guard = Guard(most={"HRK": 100})  # withdrawn in 2023
    with pytest.warns(RuntimeWarning, match="gives HRK no decimals"):
        AsyncPayments(KEY, base_url=BASE_URL, guard=guard)
