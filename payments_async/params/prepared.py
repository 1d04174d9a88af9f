"""A write that can be stored, and sent now or by another process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, Self

import attrs

from .._attrs import ValueMixin
from ..models._masking import masked
from . import operations

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    R_co = TypeVar("R_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    R_co = TypeVar("R_co", covariant=True)

_P = TypeVar("_P", bound="PreparedRequest[Any]")


@attrs.frozen(eq=False, repr=False)
class PreparedRequest(ValueMixin, Generic[R_co]):
    """A write, ready to be sent, now or by another process: the exact bytes and their idempotency key.

    Sent again within 24 hours, it is the same request to the service (Limits, Idempotency). A
    `PreparedRequest[Payout]` comes to a `Payout`; `PreparedRequest[Payout].from_json` reads one.
    """

    operation: str
    """`payouts.create`, or `POST /path` for one made with `client.request`."""
    path: str
    """Relative to the base URL, percent-encoded, with its query."""
    body: bytes = attrs.field(repr=masked)
    idempotency_key: str
    created_at: datetime
    base_url: str
    environment: str
    """`live` or `sandbox`: the request is only sent with a key of the same environment."""
    key_fingerprint: str
    """Identifies the secret key that it was made for: under another project's key it would be paid again."""
    reference: str | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict, repr=masked, hash=False)
    """The caller's `extra_headers`."""

    def to_json(self) -> str:
        """Write the request as JSON text for an outbox. It holds account data: store it accordingly."""
        fields = attrs.asdict(self, recurse=False)
        changed = {"body": self.body.decode(), "created_at": self.created_at.isoformat(), "version": 1}
        return json.dumps({**fields, **changed, "headers": dict(self.headers)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`. Raises ValueError for anything else."""
        prepared = _stored(cls, text)
        del text  # it holds account data, and tracebacks print locals
        if prepared is None:
            raise ValueError("this is not a PreparedRequest of this version; pass what to_json() returned")
        return prepared


def _stored(cls: type[_P], text: str) -> _P | None:
    """Read a stored request; None for any other text."""
    try:
        fields = json.loads(text)
        if fields.pop("version") != 1:
            return None
        _check_types(fields)
        if not operations.can_be_prepared(fields["operation"], fields["path"]):
            return None
        changed = {
            "body": fields["body"].encode(),
            "created_at": datetime.fromisoformat(fields["created_at"]).astimezone(UTC),
        }
        return cls(**{**fields, **changed})
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return None


def _check_types(fields: dict[str, Any]) -> None:
    """Raise ValueError when a field of a stored request is of another type than it was written with."""
    texts = {name: value for name, value in fields.items() if name != "headers"}
    if texts.get("reference") is None:
        texts.pop("reference")
    headers = fields["headers"]
    if not all(isinstance(value, str) for value in (*texts.values(), *headers.values())):
        raise ValueError("a field is not text")
