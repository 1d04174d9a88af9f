"""Pages, redirections, pictures and assets as answers, with the headers that keep them safe."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path

from ..._loopback.page_files import PageFiles
from .._common.operations import INTERFACE_VERSION
from .._common.values import Answer
from .appearance import PageAppearance
from .texts import say

FILES = PageFiles(Path(__file__).parent, "/checkout/assets/", {"version": INTERFACE_VERSION}, {})

_GUARDS: Mapping[str, str] = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # not no-referrer, which would make the form's Origin `null`
    "Cache-Control": "no-store",
}


def page(
    template: str,
    context: Mapping[str, object],
    appearance: PageAppearance,
    *,
    frames: str = "'none'",
    status: int = 200,
) -> Answer:
    """A page from a template; `frames` may show it within themselves."""
    policy = {
        "default-src": "'none'",
        "style-src": f"'self' {appearance.theme_source}",
        "script-src": "'self'",
        "connect-src": "'self'",
        "img-src": f"'self' {appearance.icon_origin}".rstrip(),
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
    shown = {
        "appearance": appearance,
        "brand": appearance.brand_html,
        "_": say,
    }
    return Answer(status, headers, FILES.render(template, {**shown, **context}).encode())


def redirect(address: str) -> Answer:
    """Redirect to `address`, with a GET."""
    return Answer(303, {"Location": address, **_GUARDS}, b"")


@cache
def qr_image(text: str) -> Answer:
    """`text` as a QR code: a picture at an address of its own."""
    import segno

    image = BytesIO()
    segno.make(text, error="m", micro=False).save(image, kind="svg", border=4, scale=8, light="#fff")
    return Answer(200, {"Content-Type": "image/svg+xml", **_GUARDS}, image.getvalue())
