"""`payments sandbox`: the simulated service for programs of any kind, until Ctrl-C or around one command.

opening    where it listens, and what a program needs to reach it
serving    `payments sandbox`
executing  `payments sandbox exec -- COMMAND …`
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from .._show import Json

Port = Annotated[int | None, Parameter(validator=Number(gte=1, lte=65_535))]
ProfileName = Literal["observed", "strict", "alternate", "hostile"]

sandbox: Final = App(name="sandbox")


@sandbox.default
def serve(*, port: Port = None, profile: ProfileName = "observed", json: Json = False) -> int:
    """Start the simulated service and keep it until Ctrl-C.

    Prints its address, its key, and two lines that set them for the clients of a shell. Its records are in
    memory, and gone when it stops.

    Parameters
    ----------
    port
        Where to listen; 7788, or a free port when that is taken, unless given.
    profile
        How it behaves where the interface is silent: `strict` refuses what it may, `alternate` does the other
        thing, `hostile` is as unpleasant as it may.
    json
        One JSON object instead of text.
    """
    from .serving import serve  # brings the sandbox along

    return serve(port, profile, as_json=json)


@sandbox.command(name="exec")
def execute(command: str, /, *arguments: str, port: Port = None, profile: ProfileName = "observed") -> int:
    """Run a command with a simulated service of its own: `payments sandbox exec -- python first.py`.

    The command finds it by PAYMENTS_BASE_URL and PAYMENTS_API_KEY; the service ends with it. The exit code
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
        How it behaves where the interface is silent: `strict` refuses what it may, `alternate` does the other
        thing, `hostile` is as unpleasant as it may.
    """
    from .executing import execute

    return execute([command, *arguments], port, profile)
