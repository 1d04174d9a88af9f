"""What the hosted page shows: a checkout session as one HTML document, without script or outside asset.

Every text that comes from a request is escaped where it enters the document. The brand and the colour are
those of the session's appearance; its icon is not shown, because it would be fetched from elsewhere.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape

import attrs

from ._instants import stamp
from ._iso import country_form, currency
from ._operations import INTERFACE_VERSION
from ._page_style import STYLE
from ._payment_forms import accent, action_message
from ._payouts import text_or_null
from ._records import Payment, Session

_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{content}
</main>
<footer>Simulated checkout: no real money moves. Interface {version}.</footer>
</body>
</html>
"""
_FORM = """<form method="post">
<input type="hidden" name="token" value="{token}">
<input type="hidden" name="step" value="{step}">
<button class="main" name="choice" value="pay">{label}</button>
<button name="choice" value="decline">Decline</button>
</form>"""
_BY_ATTEMPT = {"processing": "waiting", "action_required": "action", "failed": "failed"}
_BUTTONS: Mapping[str, str] = {"open": "Pay {amount}", "action": "Approve {amount}", "failed": "Try again"}
"""The states that await the payer, and what the first button says."""


@attrs.frozen
class Document:
    """An HTML page and the Content-Security-Policy source of its one style sheet."""

    html: bytes
    style: str


def state_of(payment: Payment) -> str:
    """`open`, `waiting`, `action`, `failed` (may be tried again), `paid` or `expired`."""
    if not payment.is_open:
        return "expired" if payment.status == "expired" else "paid"
    active = payment.active_attempt
    return _BY_ATTEMPT[active.status] if active else "open"


def step_of(payment: Payment) -> str:
    """Where the payer stands; a form made at another step has no effect, which ends double submissions."""
    return f"{len(payment.attempts)}-{state_of(payment)}"


def awaits_payer(payment: Payment) -> bool:
    """Whether the page offers its buttons."""
    return state_of(payment) in _BUTTONS


def session_page(session: Session, landing: str | None) -> Document:
    """The page of a session as it stands; `landing` is the address that the payer may go on to."""
    payment = session.payment
    facts = currency(payment.currency)
    amount = escape(facts.show(payment.amount, facts.digits))
    brand = escape(str(session.appearance.get("brand") or "Merchant"))
    parts = [f'<p class="brand">{brand}</p>', f"<h1>{amount}</h1>"]
    description = text_or_null(payment.body, "description")
    parts += [f"<p>{escape(description)}</p>" if description else "", _said(payment), _details(session)]
    if awaits_payer(payment):
        label = _BUTTONS[state_of(payment)].format(amount=amount)
        parts.append(_FORM.format(token=escape(session.form_token), step=step_of(payment), label=label))
    elif landing is not None:
        parts.append(f'<p><a href="{escape(landing)}">Return to {brand}</a></p>')
    return _document(f"{amount} – {brand}", "\n".join(filter(None, parts)), accent(session.appearance))


def message_page(heading: str, text: str) -> Document:
    """A page that only says something."""
    content = f"<h1>{escape(heading)}</h1>\n<p>{escape(text)}</p>"
    return _document(escape(heading), content, accent({}))


def _document(title: str, content: str, colours: tuple[str, str]) -> Document:
    style = f":root{{--accent:{colours[0]};--on-accent:{colours[1]}}}{STYLE}"
    source = f"'sha256-{b64encode(sha256(style.encode()).digest()).decode()}'"
    html = _DOCUMENT.format(title=title, style=style, content=content, version=INTERFACE_VERSION)
    return Document(html.encode(), source)


def _said(payment: Payment) -> str:
    """The state in words; a payment under way is never shown as a failure."""
    active = payment.active_attempt
    failure = active.failure.message if active and active.failure else ""
    words = {
        "open": "",
        "waiting": "The payment is being processed. Reload this page to see how it went.",
        "action": action_message(active) if active else "",
        "failed": f"The payment was not made. {failure} You can try again.",
        "paid": "Paid. Thank you.",
        "expired": "This checkout has expired. It can no longer be paid.",
    }
    state = state_of(payment)
    look = "said bad" if state in ("failed", "expired") else "said"
    role = "alert" if state == "failed" else "status"
    return f'<p class="{look}" role="{role}">{escape(words[state])}</p>' if words[state] else ""


def _details(session: Session) -> str:
    """What the session is restricted to, and until when it can be paid."""
    rows: dict[str, str] = {}
    country = country_form(session.country)
    if country is not None:
        rows["Country"] = f"{country['name']} ({country['code']})"
    if session.phone is not None:
        rows["Phone"] = session.phone
    if session.payment.is_open:
        rows["Open until"] = stamp(session.payment.expires_at)[:16].replace("T", " ") + " UTC"
    lines = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in rows.items())
    return f"<dl>{lines}</dl>" if rows else ""
