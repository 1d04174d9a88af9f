"""Each button and form of the inspector's pages: what it asks of the control API, which takes it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable

import msgspec

from payments_async.sandbox import Sandbox
from tests.sandbox.inspector.test_pages import lived, page
from tests.sandbox.raw_requests import ROUTES, Api

BUTTON = r'<button [^>]*data-call="(\w+) ([^"]+)"(?: data-body="([^"]*)")?[^>]*>([^<]+)<'
FORM = r'(?s)<form [^>]*data-call="(\w+) ([^"]+)"(.*?)</form>'
BUTTONS = {
    "Reset": ("POST reset", ""),
    "Open a checkout": ("POST try/checkout", ""),
    "Lose the answer to a payout": ("POST try/payout", ""),
    "Pay": ("POST payments/{pi}/pay", ""),
    "Decline": ("POST payments/{pi}/pay", '{"outcome": "fail:CUSTOMER_DECLINED"}'),
    "Expire": ("POST records/{pi}/settle", '{"outcome": "expire"}'),
    "Refund XOF 50": ("POST payments/{pi}/refund", ""),
    "Complete": ("POST records/{po}/settle", ""),
    "Fail": ("POST records/{po}/settle", '{"outcome": "fail:INSUFFICIENT_FUNDS"}'),
    "Resend": ("POST webhooks/{wh}/resend", ""),
    "Remove": ("DELETE rules/{rule}", ""),
    "Remove all": ("DELETE rules", ""),
    "Freeze": ("POST clock/speed", '{"speed": 0}'),
    "Real time": ("POST clock/speed", '{"speed": 1}'),
    **{f"×{speed}": ("POST clock/speed", f'{{"speed": {speed}}}') for speed in (10, 60, 3600)},
    **{f"+{by}": ("POST clock/advance", f'{{"by": "{by}"}}') for by in ("5s", "30s", "2m", "1h", "24h")},
}
FORMS = {
    "rules": {"operation", "words", "match"},
    "webhooks/forge": {"record", "event", "url"},
    "clock/advance": {"by"},
}
"""The fields of each, as far as the dot."""


def names_taken(method: str, call: str, body: dict[str, object]) -> Iterable[str]:
    """The arguments of the route, which takes these; fails where there is none."""
    (route,) = [one for one in ROUTES if one.method == method and one.pattern.fullmatch(call)]
    found = route.pattern.fullmatch(call)
    assert found is not None
    if body:
        msgspec.convert({**body, **found.groupdict()}, route.arguments, strict=False)
    return route.arguments.__struct_fields__


def test_each_button_and_form_asks_for_what_it_says(sandbox: Sandbox, api: Api) -> None:
    unused = Sandbox()
    paths = lived(sandbox, api)
    sandbox.pay(api.checkout().data["checkout"]["id"])
    buttons: dict[str, tuple[str, str]] = {}
    forms: dict[str, set[str]] = {}
    for shown in (page(unused), *(page(sandbox, path) for path in paths)):
        for method, call, escaped, label in re.findall(BUTTON, shown):
            body = html.unescape(escaped)
            names_taken(method, call, json.loads(body or "{}"))
            named = re.sub(r"(?<=/)(po|pi|wh|rule)_\w+", r"{\1}", call)
            buttons[label] = f"{method} {named}", body
        for method, call, inside in re.findall(FORM, shown):
            forms[call] = {name.partition(".")[0] for name in re.findall(r' name="([^"]+)"', inside)}
            assert forms[call] <= {*names_taken(method, call, {})}
    assert (buttons, forms) == (BUTTONS, FORMS)
