"""`payments sandbox`: the simulated service for programs of any kind, until Ctrl-C or around one command.

opening    where it listens, and what a program needs to reach it
serving    `payments sandbox`
executing  `payments sandbox exec -- COMMAND …`
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from .._output import Json

Port = Annotated[int | None, Parameter(validator=Number(gte=1, lte=65_535))]
ProfileName = Literal["observed", "strict", "alternate", "hostile"]
Speed = Annotated[float, Parameter(validator=Number(gte=0, lte=1_000_000))]
Seed = Annotated[int | None, Parameter(validator=Number(gte=0))]
Hosts = Annotated[tuple[str, ...], Parameter(negative=())]

sandbox: Final = App(name="sandbox")


@sandbox.default
def serve(
    *,
    port: Port = None,
    profile: ProfileName = "observed",
    scenario: str | None = None,
    speed: Speed = 1.0,
    state: Path | None = None,
    allow_webhooks_to: Hosts = (),
    seed: Seed = None,
    json: Json = False,
) -> int:
    """Start the simulated service and keep it until Ctrl-C.

    Prints its address, its key, where its inspector is, and two lines that set address and key for the
    clients of a shell. Without a state file its records are gone when it stops.

    Parameters
    ----------
    port
        Where to listen; 7788, or a free port when that is taken, unless given.
    profile
        How it behaves where the interface is silent; `hostile` as unpleasantly as it may.
    scenario
        What happens to requests and records that nothing else decides: words such as `slow:200ms` or
        `"fail:INVALID_RECIPIENT after=10s"`.
    speed
        Its seconds for one of yours: 60 makes an hour pass in a minute, 0 stands still.
    state
        A file in which records, keys and time outlive it; written every two seconds and at the end.
    allow_webhooks_to
        A host besides this machine and its private networks that webhooks may go to; may be
        given again.
    seed
        What its key and identifiers are drawn from: the same for the same seed, and so known to
        others; drawn by chance unless given. A state that exists keeps its own.
    json
        One JSON object instead of text.
    """
    from .serve import (
        ServeOptions,  # brings the sandbox along
        serve,
    )

    return serve(ServeOptions(port, profile, scenario, speed, state, allow_webhooks_to, seed), as_json=json)


@sandbox.command(name="exec")
def execute(
    command: str,
    /,
    *arguments: str,
    port: Port = None,
    profile: ProfileName = "observed",
    scenario: str | None = None,
    speed: Speed = 1.0,
    state: Path | None = None,
    allow_webhooks_to: Hosts = (),
    seed: Seed = None,
) -> int:
    """Run a command with a simulated service of its own: `payments sandbox exec -- python first.py`.

    The command finds it by PAYMENTS_BASE_URL and PAYMENTS_API_KEY; the service ends with it. Where it is, and
    its inspector, is told on stderr. Put `--` before the command, whose options are its own. The exit code
    is the command's own, 127 when there is no such command, 126 when it cannot be run.

    Parameters
    ----------
    command
        What to run.
    arguments
        What it is given.
    port
        Where to listen; a free port unless given.
    profile
        How it behaves where the interface is silent; `hostile` as unpleasantly as it may.
    scenario
        What happens to requests and records that nothing else decides, in scenario words.
    speed
        Its seconds for one of yours.
    state
        A file in which records, keys and time outlive it.
    allow_webhooks_to
        A further host that webhooks may go to; may be given again.
    seed
        What its key and identifiers are drawn from; chance unless given.
    """
    from .exec_command import execute
    from .serve import ServeOptions

    return execute(
        [command, *arguments], ServeOptions(port, profile, scenario, speed, state, allow_webhooks_to, seed)
    )
