"""The shop's pages. Whatever comes from outside is escaped; there is no inline style and no inline script."""

from __future__ import annotations

from decimal import Decimal
from html import escape
from typing import Final

from aiohttp import web
from order import Order

BRAND: Final = "Kiln"
HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


LIVE: Final = '<script src="/static/live.js" defer></script>'
WITHOUT_SCRIPT: Final = '<noscript><meta http-equiv="refresh" content="2"></noscript>'


def money(amount: Decimal, currency: str) -> str:
    """`GHS 1,250.75`."""
    return escape(f"{currency} {amount:,.2f}")


def word(text: str, worth: str = "") -> str:
    """A word in a box, in the colour of what it is worth."""
    return f'<span class="word {worth}">{escape(text)}</span>'


def page(title: str, body: str, *, status: int = 200, head: str = "") -> web.Response:
    """A page with the shop's head and foot."""
    html = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)} · {BRAND}</title>
<link rel="icon" href="/static/logo.svg">
<link rel="stylesheet" href="/static/shop.css">
{head}
<header>
<a class="brand" href="/"><img src="/static/logo.svg" alt="" width="40" height="40">{BRAND}</a>
<span class="test">Test shop</span>
</header>
<main>{body}</main>
<footer>An example of payments-sdk. It sells nothing, and no money moves.</footer>
</html>"""
    return web.Response(text=html, status=status, content_type="text/html", headers=HEADERS)


def front_page(price: str) -> web.Response:
    """The product and its button."""
    return page(
        "The morning cup",
        f"""<div class="product">
<img src="/static/cup.svg" alt="A clay cup with white glaze, full of coffee" width="480" height="400">
<div>
<h1>The morning cup</h1>
<p class="about">Thrown by hand, fired twice, and glazed white inside. It holds 250 ml and stays warm.</p>
<p class="price">{price}</p>
<form method="post" action="/orders"><button>Buy the cup</button></form>
<p class="small">You pay on the next page: mobile money, bank or card.</p>
</div>
</div>""",
    )


def sorry_page() -> web.Response:
    """A payment that could not be started."""
    text = "The payment could not be started. Please try again in a minute."
    return page(
        "Not now", state("Not now", text, "Nothing was paid", _link("/", "Back to the cup")), status=503
    )


def order_page(order: Order, more: str) -> web.Response:
    """What the payer sees of an order, and `more`. It looks again by itself."""
    again = _link(order.checkout_url, "Pay now") if order.checkout_url else ""
    if order.paid:
        title, text, again = "Paid", "Thank you. Your cup is packed, and on its way to you.", ""
    elif order.under_way:
        title, again = "We are checking your payment", ""
        text = "This page updates by itself. Please do not pay again."
    else:
        title, text = "Not paid yet", "We have put your cup aside until it is paid."
    head = LIVE if order.paid else LIVE + WITHOUT_SCRIPT
    return page(title, state(title, text, money(order.amount, order.currency), again) + more, head=head)


def state(title: str, text: str, price: str, more: str) -> str:
    """The card that says how an order stands; a screen reader says it again when it changes."""
    return f"""<section class="state">
<img src="/static/cup.svg" alt="" width="480" height="400">
<div id="state" data-live aria-live="polite">
<p class="small">The morning cup · {price}</p>
<h1>{title}</h1>
<p class="about">{text}</p>
{more}
</div>
</section>"""


def _link(address: str, text: str) -> str:
    return f'<a class="button" href="{escape(address)}">{text}</a>'
