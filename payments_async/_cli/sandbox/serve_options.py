"""The options that both sandbox commands share. The texts are their help."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from cyclopts import Parameter
from cyclopts.validators import Number

from .._output import Flag

Port = Annotated[int | None, Parameter(validator=Number(gte=1, lte=65_535))]
ProfileName = Literal["observed", "strict", "alternate", "hostile"]
Speed = Annotated[float, Parameter(validator=Number(gte=0, lte=1_000_000))]
Seed = Annotated[int | None, Parameter(validator=Number(gte=0))]
Ledger = Annotated[str | None, Parameter(metavar="LEDGER", show_default=False)]
Hosts = Annotated[tuple[str, ...], Parameter(negative=(), show_default=False)]


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class ServeOptions:
    """How the simulated service is started."""

    port: Port = None
    """Where to listen. Unless given, 7788; for one command a free port."""
    profile: ProfileName = "observed"
    """How it behaves where the interface is silent; `hostile` as unpleasantly as it may."""
    scenario: str | None = None
    """What happens to requests and records that nothing else decides: words such as `slow:200ms` or
    `"fail:INVALID_RECIPIENT after=10s"`."""
    speed: Speed = 1.0
    """Its seconds for one of yours: 60 makes an hour pass in a minute, 0 stands still."""
    allow_webhooks_to: Hosts = ()
    """A host besides this machine and its private networks that webhooks may go to; repeat it for more."""
    shared: Flag = False
    """Let every user of this machine reach it; your own unless given."""
    bind: str | None = None
    """An address of a network to listen on, for containers; 0.0.0.0 for all. The API then takes the key of
    PAYMENTS_API_KEY, if that is set, and pages need the token in the addresses that are printed."""
    seed: Seed = None
    """What its key and identifiers are drawn from. The same seed gives the same key, which others then know;
    random unless given."""
