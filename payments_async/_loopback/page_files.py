"""The files of pages: Jinja2 templates, and the assets that pages load."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from .._extras import needs
from . import GUARDS

if TYPE_CHECKING:
    from jinja2 import Environment

_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_ASSET_HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "X-Content-Type-Options": "nosniff",
}


def console_headers(forms: str) -> dict[str, str]:
    """Headers of pages that load only what is their own and stand in no other site's.

    `forms` is where forms may be sent, as a source of the Content-Security-Policy.
    """
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
            f"form-action {forms}; base-uri 'none'; frame-ancestors 'none'"
        ),
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        **GUARDS,
    }


class PageFiles:
    """The folders `templates` and `assets` beside a module, read once and at once.

    A server whose package is upgraded while it runs keeps to the files that fit its code. `address` is where
    the assets are served; templates call `functions` by name (besides `asset`), and apply `filters`.
    """

    def __init__(
        self,
        folder: Path,
        address: str,
        functions: Mapping[str, object],
        filters: Mapping[str, Callable[..., object]],
    ) -> None:
        self._templates = _read(folder / "templates")
        self.assets: Mapping[str, bytes] = _read(folder / "assets")
        self._addresses = {
            name: f"{address}{name}?v={sha256(content).hexdigest()[:12]}"
            for name, content in self.assets.items()
        }
        self._functions = {"asset": self.asset_address, **functions}
        self._filters = filters

    def asset_address(self, name: str) -> str:
        """The address of an asset. It changes with the content, so browsers may keep what they have."""
        return self._addresses[name]

    def asset(self, name: str) -> tuple[dict[str, str], bytes] | None:
        """Headers and content of an asset, for pages of any origin; None for any other name."""
        if name not in self.assets:
            return None
        return {"Content-Type": _TYPES[Path(name).suffix], **_ASSET_HEADERS}, self.assets[name]

    def render(self, template: str, context: Mapping[str, object]) -> str:
        """The HTML of a template. Every value is escaped, and an unknown name is an error.

        `ModuleNotFoundError`, saying what to install, without the `sandbox` extra.
        """
        return self._environment.get_template(template).render(context)

    @cached_property
    def _environment(self) -> Environment:
        try:  # imported with the first page: a sandbox without visitors starts without it
            from jinja2 import DictLoader, Environment, StrictUndefined
        except ModuleNotFoundError as missing:
            raise ModuleNotFoundError(needs("the sandbox needs", "sandbox")) from missing
        made = Environment(
            loader=DictLoader({name: text.decode() for name, text in self._templates.items()}),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        made.globals.update(self._functions)
        made.filters.update(self._filters)
        return made


def _read(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}
