"""One delivery on its way, and what a scenario's words do to it. Values only."""

from __future__ import annotations

from typing import Literal

import attrs

from .._common.scenario_words import HookWords

State = Literal["waiting", "sending", "delivered", "dropped", "refused", "given_up"]
Origin = Literal["due", "duplicate", "resent", "forged"]


@attrs.frozen
class WebhookTry:
    """One try at delivering."""

    at: float
    """The time when the try began: seconds since 1970, of the sandbox's clock."""
    seconds: float
    """The duration of the try, in seconds of the machine."""
    status: int | None = None
    """The status of the receiver's answer; None when there was no whole answer in time."""
    error: str | None = None
    """The reason of a failure that the status does not show."""
    only_listened: bool = False
    """True if its receiver said that nothing acts on it: `payments webhooks listen` does."""
    answer: str = attrs.field(default="", repr=False)
    """The beginning of what a receiver that refused it answered."""

    @property
    def is_success(self) -> bool:
        """True if the receiver took it: any 2xx."""
        return self.error is None and self.status is not None and 200 <= self.status < 300


@attrs.frozen
class Webhook:
    """A delivery with its state and tries. Times are seconds since 1970, of the sandbox's clock."""

    id: str
    at: float
    """The time when the delivery was due."""
    event: str
    record_id: str
    url: str = attrs.field(repr=False)
    body: bytes = attrs.field(repr=False)
    origin: Origin = "due"
    """`duplicate` and `resent` ones repeat another, a `forged` one says what is not so."""
    repeats: str | None = None
    """The id of the delivery that this one repeats."""
    state: State = "waiting"
    tries: tuple[WebhookTry, ...] = ()
    next_at: float | None = None
    """The time of the next try; None when there is none."""
    reason: str | None = None
    """The reason why it was refused, given up or dropped."""
    first_at: float = 0.0
    """The planned time of the first try."""

    @property
    def is_over(self) -> bool:
        """True if the webhook will not be tried any more."""
        return self.state not in ("waiting", "sending")


@attrs.frozen
class HookEffects:
    """The effects of a scenario's webhook words on each delivery of a record."""

    dropped: bool = False
    """True if the delivery is never sent."""
    delay: float = 0.0
    """Seconds until the first try."""
    copies: int = 1
    reordered: bool = False
    """True if the delivery waits until the record's next one has been tried."""
    before_response: bool = False
    """The first try is over before the request that caused it is answered; so nothing delays it."""


NO_EFFECTS = HookEffects()


def hook_effects(hooks: HookWords) -> HookEffects:
    """The effects of a scenario's webhook words; of two `delay` the later word counts."""
    if not hooks:
        return NO_EFFECTS
    words = {word.kind: word for word in hooks}
    first = "before_response" in words
    return HookEffects(
        dropped="drop" in words,
        delay=words["delay"].seconds if "delay" in words and not first else 0.0,
        copies=words["duplicate"].count if "duplicate" in words else 1,
        reordered="reorder" in words and not first,
        before_response=first,
    )
