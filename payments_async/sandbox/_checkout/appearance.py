"""The appearance of a session's pages: brand, icon, colours; defaults where none is given."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import attrs

from .._common.json import JsonObject
from .._records.payment_json import accent, visible_on

if TYPE_CHECKING:
    from markupsafe import Markup

_LIGHT, _DARK = "#ffffff", "#161b22"
"""The two grounds that a mark in the session's colour has to stand out from; the style sheet's `--card`."""

_NEAR = ("127.0.0.1", "localhost")
"""Hosts of this machine, as a page's policy can name them."""

_LANGUAGE = re.compile("[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


@attrs.frozen
class PageAppearance:
    """The appearance of a page. `theme` is its one inline style."""

    brand: str
    initial: str
    icon: str | None
    icon_origin: str
    """The origin of the icon, for the Content-Security-Policy; empty without one."""
    theme: str
    badge: bool
    lang: str
    """The language of the merchant's own texts; empty when the merchant did not say it."""

    @property
    def brand_html(self) -> Markup:
        """The brand within a text, which may run the other way."""
        from markupsafe import Markup  # part of Jinja2: imported with the first page

        return Markup('<bdi lang="{}">{}</bdi>').format(self.lang, self.brand)

    @property
    def theme_source(self) -> str:
        """The source of the inline style in the Content-Security-Policy."""
        return f"'sha256-{b64encode(sha256(self.theme.encode()).digest()).decode()}'"


def appearance_of(appearance: JsonObject, origin: str) -> PageAppearance:
    """The appearance of a session's pages; `origin` is this server's own address.

    An icon on another machine is not shown: fetching it would tell that machine
    who pays, and when. The brand's first letter takes its place.
    """
    brand = str(appearance.get("brand") or "Merchant").strip() or "Merchant"
    icon = appearance.get("icon_url")
    icon_origin = _near_origin(icon, origin) if isinstance(icon, str) else ""
    lang = appearance.get("lang")
    return PageAppearance(
        brand=brand,
        initial=brand[0].upper(),
        icon=str(icon) if icon_origin else None,
        icon_origin=icon_origin,
        theme=_theme(*accent(appearance)),
        badge=appearance.get("display_platform_badge") is not False,
        lang=lang if isinstance(lang, str) and _LANGUAGE.fullmatch(lang) else "",
    )


def _near_origin(address: str, own: str) -> str:
    """The origin of an address that is this server's or another one's on this machine; else empty."""
    if address.startswith(f"{own}/"):
        return own
    try:
        parts = urlsplit(address)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return ""
    near = parts.scheme in ("http", "https") and parts.hostname in _NEAR
    return f"{parts.scheme}://{parts.hostname}{port}" if near else ""


def _theme(colour: str, contrast: str) -> str:
    light, dark = visible_on(_LIGHT, colour), visible_on(_DARK, colour)
    return (
        f":root{{--accent:{colour};--on-accent:{contrast};--mark:{light}}}"
        f"@media(prefers-color-scheme:dark){{:root{{--mark:{dark}}}}}"
    )
