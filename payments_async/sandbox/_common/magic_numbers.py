"""Magic identifiers: a phone or account number whose last six digits are `9900NN` chooses a scenario.

Any other ending is an ordinary number, and so is one whose outcome the record cannot have (`expire` for a
payout).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from .scenario_words import Scenario, parse

_RECORD_WORDS: Mapping[str, str] = {
    "00": "complete immediate",
    "01": "fail:INSUFFICIENT_FUNDS",
    "02": "fail:INVALID_RECIPIENT",
    "03": "fail:CUSTOMER_DECLINED",
    "04": "fail:GATEWAY_UNAVAILABLE",
    "10": "hang",
    "11": "expire",
    "12": "action:approve_on_phone",
    "13": "action:redirect_to_url",
    "14": "action:collect_otp",
    "15": "failover:1",
}
_REQUEST_WORDS: Mapping[str, str] = {
    "20": "lost_response",
    "21": "lost_request",
    "22": "http:503",
    "23": "429:1",
    "24": "slow:2s",
    "25": "hang",
    "26": "reset",
    "27": "cut_body",
    "28": "bad_json",
    "29": "wrong_type",
    "30": "empty",
}
_HOOK_WORDS: Mapping[str, str] = {
    "40": "drop",
    "41": "delay:30s",
    "42": "duplicate",
    "43": "reorder",
    "44": "before_response",
    "45": "forge",
}
MAGIC: Mapping[str, Scenario] = {
    **{ending: parse(words, "outcome") for ending, words in _RECORD_WORDS.items()},
    **{ending: parse(words, "fault") for ending, words in _REQUEST_WORDS.items()},
    **{ending: parse(words, "outcome") for ending, words in _HOOK_WORDS.items()},
}


@lru_cache(maxsize=1024)
def magic_scenario(number: str) -> Scenario | None:
    """The scenario a phone or account number stands for, whatever separates its digits; None for most."""
    digits = re.sub(r"\D", "", number)
    return MAGIC.get(digits[-2:]) if digits[-6:-2] == "9900" else None
