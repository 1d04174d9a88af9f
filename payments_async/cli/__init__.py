"""The `payments` command.

    _app         the commands, and the exit code and message of each error
    _exit_codes  the exit codes
    _output      lines, progress and tables for people; JSON lines for programs
    demo         a payment and a thousand payouts, compared with the service's books
    payouts      a file of payouts, each row paid at most once
    sandbox      the simulated service until Ctrl-C, or around one command
    webhooks     a local receiver; sending a delivery of the simulated service again

A command is a package, listed in `_app.COMMANDS`. Commands import the client and the sandbox when they run,
so that `payments --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .._version import with_extra
from ._exit_codes import Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (`sys.argv` when None) and return its exit code (`_exit_codes.Exit`)."""
    try:
        from ._app import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("cyclopts", "rich"):
            raise
        print(f"payments needs {missing.name}: {with_extra('cli')}", file=sys.stderr)
        return Exit.USAGE
    return run(sys.argv[1:] if argv is None else argv)
