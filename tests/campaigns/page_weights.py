"""How heavy the sandbox's pages are, found by their links where everything has happened."""

from __future__ import annotations

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.sandbox._common.scenario_words import ACTION_TYPES

_LOADED = re.compile(r"<(?:link|script|img)\b[^>]*?\b(?:href|src)=\"([^\"]*)\"")
_LINKED = re.compile(r"<(?:a|iframe)\b[^>]*?\b(?:href|src)=\"([^\"]*)\"")
_VARIES = re.compile(r"\b(?=[A-Za-z_]*\d)[A-Za-z0-9_-]{8,}\b|(?<==)[^&]+")
"""What differs between two pages of a kind: an id, the value of a query's field."""
_OF_A_KIND = 8
_PLACES = ("", "/payment", "/phone", "/bank", "/provider")


def heaviest(each: int = 40) -> tuple[int, int, str]:
    """How many pages there are, and the bytes and the path of the heaviest with all that it loads.

    `each` is how often everything has happened.
    """
    sandbox = Sandbox(clock=VirtualClock.frozen())
    weights = {path: _weight(sandbox, html) for path, html in pages(sandbox, lived(sandbox, each))}
    path = max(weights, key=weights.__getitem__)
    return len(weights), weights[path], path


def lived(sandbox: Sandbox, each: int) -> list[str]:
    """Everything happens; gives the addresses to begin at."""
    begin = ["/_sandbox/"]
    for number in range(each):
        _post(sandbox, "payouts", _PAYOUT | {"reference": f"r-{number}"})
        _post(sandbox, "payouts", _PAYOUT | {"description": "no name", "amount": number // 2 + 1})
        _post(sandbox, "payouts", {"reference": "wrong"})
    for outcome in (
        "complete",
        "fail:CUSTOMER_DECLINED",
        "hang",
        *(f"action:{name}" for name in ACTION_TYPES),
    ):
        for _ in range(min(each, 3)):
            made = _post(sandbox, "payment/checkouts", _PAYMENT)["data"]
            begin += [f"/checkout/{made['checkout']['id']}{place}" for place in _PLACES]
            begin.append(f"/checkout/{made['checkout']['id']}?country=BJ")
            paid = sandbox.pay(made["checkout"]["id"], outcome=outcome)
            begin += [f"/actions/{paid.attempts[-1]}{place}" for place in _PLACES]
    for webhook in sandbox.webhooks[:20]:
        sandbox.resend(webhook.id)
    sandbox.on("payouts.*", reference="later").respond("lost_response")
    return begin


def kind_of(path: str) -> str:
    """The address of a page without what differs between pages of its kind."""
    return _VARIES.sub("-", path)


def pages(sandbox: Sandbox, begin: list[str]) -> Iterator[tuple[str, str]]:
    """What links lead to, breadth first: some of each kind."""
    known, left, kinds = set(begin), deque(begin), Counter(map(kind_of, begin))
    while left:
        path = left.popleft()
        try:
            answer = sandbox.handle("GET", path)
        except ValueError:  # the live stream is no page
            continue
        if not answer.headers.get("Content-Type", "").startswith("text/html"):
            continue
        html = answer.body.decode()
        if answer.status == 200:
            yield path, html
        for link in _LINKED.findall(html):
            target = link.replace("&amp;", "&").partition("#")[0]
            kind = kind_of(target)
            if target.startswith("/") and target not in known and kinds[kind] < _OF_A_KIND:
                kinds[kind] += 1
                known.add(target)
                left.append(target)


def _weight(sandbox: Sandbox, html: str) -> int:
    loaded = {address.partition("?")[0] for address in _LOADED.findall(html) if address.startswith("/")}
    return len(html.encode()) + sum(len(sandbox.handle("GET", address).body) for address in loaded)


def _post(sandbox: Sandbox, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {sandbox.api_key}"}
    return json.loads(sandbox.handle("POST", f"/v1/{path}", headers, json.dumps(body).encode()).body)


_PAYOUT: dict[str, Any] = {
    "amount": 10,
    "currency": "GHS",
    "method": "mobile_money",
    "instrument": {"type": "phone", "phone_number": "+233200000001", "country": "GH"},
    "webhook_url": "http://shop.test:9/hook",
}
_PAYMENT: dict[str, Any] = {
    "amount": 50,
    "currency": "XOF",
    "description": "Shoes",
    "return_url": "http://shop.test:9/back",
    "webhook_url": "http://shop.test:9/hook",
    "appearance": {"color": "#0a7", "brand": "Shop"},
}
