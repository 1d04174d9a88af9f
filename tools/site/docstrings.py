"""An extension of griffe: what docstrings name as a file of the repository is a page of the site."""

from __future__ import annotations

from typing import Any

import griffe


class PageLinks(griffe.Extension):  # type: ignore[misc] # griffe is there where the site is built
    """Makes links of the names of files."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """A docstring names the interface by its file: the site has a link to its page."""
        if obj.docstring is not None:
            obj.docstring.value = obj.docstring.value.replace(
                "`docs/interface.md`", "[the interface](../interface/)"
            )
