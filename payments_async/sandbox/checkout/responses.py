"""Pages, redirections and assets as answers, with the headers that keep them safe."""

from __future__ import annotations

from collections.abc import Mapping

from ..common.values import Answer
from .appearance import PageAppearance
from .rendering import ASSETS, read_asset

_GUARDS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # not no-referrer, which would make the form's Origin `null`
    "Cache-Control": "no-store",
}


def page(html: str, look: PageAppearance, *, frames: str = "'none'", status: int = 200) -> Answer:
    """An HTML page; `frames` says whose pages may show it within themselves."""
    policy = {
        "default-src": "'none'",
        "style-src": f"'self' {look.theme_source}",
        "script-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self'",
        "frame-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": frames,
    }
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Security-Policy": "; ".join(f"{name} {sources}" for name, sources in policy.items()),
        **_GUARDS,
    }
    return Answer(status, headers, html.encode())


def redirect(address: str) -> Answer:
    """Go on with a GET of `address`."""
    return Answer(303, {"Location": address, **_GUARDS}, b"")


def image(svg: bytes) -> Answer:
    """A picture."""
    return Answer(200, {"Content-Type": "image/svg+xml", **_GUARDS}, svg)


def asset(name: str) -> Answer | None:
    """One of the files that pages load; None for any other name."""
    if name not in ASSETS:
        return None
    lasting = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Answer(200, {**_GUARDS, **lasting, "Content-Type": ASSETS[name]}, read_asset(name))
