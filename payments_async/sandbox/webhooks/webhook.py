"""One delivery on its way, as a value."""

from __future__ import annotations

from typing import Literal

import attrs

State = Literal["waiting", "sending", "delivered", "dropped", "refused", "given_up"]
Origin = Literal["due", "duplicate", "resent", "forged"]


@attrs.frozen
class WebhookTry:
    """One try at delivering."""

    at: float
    """When it began: seconds since 1970, of the sandbox's clock."""
    seconds: float
    """How long it took, in seconds of the machine."""
    status: int | None = None
    """What the receiver answered; None when there was no whole answer in time."""
    error: str | None = None
    """Why it is not a success, where the status does not tell."""
    only_listened: bool = False
    """Whether its receiver said that nothing acts on it: `payments webhooks listen` does."""

    @property
    def is_success(self) -> bool:
        """Whether the receiver took it: any 2xx."""
        return self.error is None and self.status is not None and 200 <= self.status < 300


@attrs.frozen
class Webhook:
    """A delivery and what became of it. Times are seconds since 1970, of the sandbox's clock."""

    id: str
    at: float
    """When it was due."""
    event: str
    record_id: str
    url: str = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    origin: Origin = "due"
    """`duplicate` and `resent` ones repeat another, a `forged` one says what is not so."""
    repeats: str | None = None
    """The id of the one it repeats."""
    state: State = "waiting"
    tries: tuple[WebhookTry, ...] = ()
    next_at: float | None = None
    """When it is tried next; None when it is not."""
    reason: str | None = None
    """Why it was refused or given up, or that a scenario dropped it."""
    first_at: float = 0.0
    """When the first try was planned for."""

    @property
    def is_over(self) -> bool:
        """Whether it will not be tried any more."""
        return self.state not in ("waiting", "sending")
