"""The program of docs/index.md that charges a phone, and a payer who does what it says."""

from __future__ import annotations

import re

import pytest

from payments_async.sandbox import Sandbox
from tests.docs.pages import section


@pytest.mark.parametrize(("answer", "end"), [(None, "paid"), ("fail:NO_FUNDS", "not paid: No funds.")])
def test_it_tells_its_payer_and_waits(monkeypatch: pytest.MonkeyPatch, answer: str | None, end: str) -> None:
    text, told = section("docs/index.md", "Charge a phone without the hosted page"), list[str]()
    with Sandbox(seed=880_006) as sandbox:

        def tell(*words: str) -> None:
            told.append(" ".join(words))
            if len(told) == 1:  # the payer reads it, and answers
                sandbox.pay(sandbox.books.payments()[0].id, outcome=answer)

        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        exec(re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0], {"print": tell})
    assert told == ["tell the payer: Approve the payment on your phone.", end]
