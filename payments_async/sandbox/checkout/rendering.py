"""Templates and assets: the files beside this one, read when the sandbox starts."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.iso_codes import INSTALL_IT
from ..common.operations import INTERFACE_VERSION

if TYPE_CHECKING:
    from jinja2 import Environment

ASSETS: Mapping[str, str] = {
    "checkout.css": "text/css; charset=utf-8",
    "checkout.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "sdk.js": "text/javascript; charset=utf-8",
}
"""What a page may load, each with its type."""


def _read(folder: str) -> Mapping[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(__file__).with_name(folder).iterdir()}


# Read with the code that fills them in: an upgrade under a running sandbox mixes no two versions.
_TEMPLATES, _CONTENTS = _read("templates"), _read("assets")


def read_asset(name: str) -> bytes:
    """The content of one of `ASSETS`."""
    return _CONTENTS[name]


@cache
def asset_address(name: str) -> str:
    """Where a page finds an asset; changes with its content, so that it may be kept for ever."""
    return f"/checkout/assets/{name}?v={sha256(read_asset(name)).hexdigest()[:12]}"


@cache
def _environment() -> Environment:
    try:  # imported with the first page: a sandbox without visitors starts without it
        from jinja2 import DictLoader, Environment, StrictUndefined
    except ImportError as missing:
        raise ImportError(f"the hosted checkout needs Jinja2: {INSTALL_IT}") from missing
    made = Environment(
        loader=DictLoader({name: text.decode() for name, text in _TEMPLATES.items()}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.globals.update(asset=asset_address, version=INTERFACE_VERSION)
    return made


def render(template: str, context: Mapping[str, object]) -> str:
    """The HTML of a template; every value is escaped unless it is markup of our own."""
    return _environment().get_template(template).render(context)


@cache
def qr_code(text: str) -> str:
    """An inline SVG with `text` as a QR code: no image to fetch, no `data:` address."""
    import segno  # as late as the templates

    code = segno.make(text, error="m", micro=False)
    return str(code.svg_inline(border=4, omitsize=True, dark="#000", light="#fff"))


@cache
def qr_image(text: str) -> bytes:
    """The same as a file of its own."""
    import segno

    image = BytesIO()
    segno.make(text, error="m", micro=False).save(image, kind="svg", border=4, scale=8, light="#fff")
    return image.getvalue()
