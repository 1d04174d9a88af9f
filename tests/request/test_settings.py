"""A client's options, settled."""

from __future__ import annotations

from typing import Any

import pytest

from payments_async import RateLimits
from payments_async._request.settings import Settings, check_numbers, settle, user_agent, variables
from payments_async.errors import ConfigurationError

KEY, URL = "sk_sandbox_s3cret", "https://x.test/v1"
NUMBERS: dict[str, Any] = {
    "timeout": 30.0,
    "deadline": None,
    "max_retries": 2,
    "max_retry_after": 120.0,
    "on_limit": "wait",
}


def settled(environ: dict[str, str], **options: Any) -> Settings:
    """Settings from an environment and these options."""
    nothing = dict.fromkeys(("api_key", "base_url", "environment", "limits", "app_info", "on_event"))
    return settle(variables(environ), **{**nothing, **NUMBERS, **options})


FULL = {"PAYMENTS_API_KEY": KEY, "PAYMENTS_BASE_URL": URL, "PAYMENTS_RATE_SHARE": "1/4", "HOME": "/"}


def test_only_our_variables_are_kept_and_none_shows_its_value() -> None:
    kept = variables({**FULL, "PAYMENTS_BASE_URL": ""})
    assert kept == {"PAYMENTS_API_KEY": KEY, "PAYMENTS_RATE_SHARE": "1/4"}
    assert "s3cret" not in repr(kept)


def test_variables_fill_what_is_none() -> None:
    settings = settled(FULL)
    assert str(settings.key().authorization) == f"Bearer {KEY}"
    assert settings.base_url == URL
    assert settings.limits == RateLimits().share(0.25)
    assert "s3cret" not in repr(settings)


def test_options_come_first() -> None:
    settings = settled(FULL, api_key=lambda: "sk_live_b", base_url="https://y.test/v1")
    assert settings.key().environment == "live"
    assert settings.base_url == "https://y.test/v1"
    assert settled({}, api_key=KEY, base_url=URL).limits is None


@pytest.mark.parametrize("name", ["api_key", "base_url"])
def test_an_empty_option_is_not_filled_in(name: str) -> None:
    with pytest.raises(ConfigurationError):
        settled(FULL, **{name: ""})


@pytest.mark.parametrize(
    ("numbers", "told"),
    [
        ({"timeout": 0}, "timeout"),
        ({"deadline": "9"}, "deadline"),
        ({"connect_timeout": True}, "connect_timeout"),
        ({"max_retry_after": float("nan")}, "max_retry_after"),
        ({"max_retries": None}, "max_retries"),
        ({"on_limit": ["wait"]}, "on_limit"),
    ],
)
def test_senseless_numbers_are_refused_by_name(numbers: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        check_numbers(numbers)


def test_sensible_numbers_come_back_as_they_are() -> None:
    for numbers in ({}, NUMBERS, {"timeout": 1, "on_limit": "raise", "max_retries": 0}):
        assert check_numbers(dict(numbers)) == numbers


def test_an_application_may_name_itself() -> None:
    assert user_agent("shop/1.2") == f"{user_agent(None)} shop/1.2"
    assert user_agent(None).startswith("payments-sdk/")
