"""`payments sandbox`: the simulated service for programs of any kind, until Ctrl-C or around one command.

serve_options  the options of both commands
serve          starts the service, prints its address, runs the command of `exec`
"""

from __future__ import annotations

from typing import Final

from cyclopts import App

from .._output import Flag, JsonFlag
from .serve_options import Ledger, ServeOptions

sandbox: Final = App(name="sandbox")


@sandbox.default
def until_stopped(
    *, options: ServeOptions | None = None, ledger: Ledger = None, json: JsonFlag = False
) -> int:
    """Start the simulated service and keep it until Ctrl-C.

    Prints its address, its key, where its inspector is, and two lines that set address and key for the
    clients of a shell. Its records are gone when it stops.

    Parameters
    ----------
    ledger
        Show payouts in the inspector under the keys of this ledger's rows, which may be loaded later. A key
        stays in this process.
    """
    from .serve import serve  # imports the sandbox

    return serve(options or ServeOptions(), ledger, as_json=json)


@sandbox.command(name="exec")
def execute(
    command: str, /, *arguments: str, options: ServeOptions | None = None, fail_on_advice: Flag = False
) -> int:
    """Run a command with a simulated service of its own: `payments sandbox exec -- python first.py`.

    The command finds it by PAYMENTS_BASE_URL and PAYMENTS_API_KEY; the service ends with it. Its address and
    that of its inspector are printed on stderr, and at the end what the Advisor found. Put `--` before the
    command, whose options are its own. The exit code is the command's own, 127 when there is no such command,
    126 when it cannot be run.

    Parameters
    ----------
    command
        What to run.
    arguments
        Its arguments.
    fail_on_advice
        End with 1 when the Advisor found something, although the command ended well: for CI.
    """
    from .serve import execute

    return execute([command, *arguments], options or ServeOptions(), fail_on_advice=fail_on_advice)
