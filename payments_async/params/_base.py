"""Base class of request objects, with a masked repr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._attrs import ValueMixin
from ..models._record import shown_fields

Pairs = Mapping[str, Any]
"""JSON pairs that are sent unchanged."""


class Params(ValueMixin):
    """A request object. Its repr masks personal and account data."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(shown_fields(self))})"
