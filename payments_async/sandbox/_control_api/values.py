"""Values that the functions of the control API share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Limit = Annotated[int, Meta(ge=1, le=500, description="at most so many")]


class Refusal(Exception):
    """The refusal of a request: `status`, the fault, and the field that it is about."""

    def __init__(self, status: int, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.field = field
