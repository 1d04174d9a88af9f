"""The `payments` command.

    main         what the shell starts; says in one line what to install when the `cli` extra is missing
    _app         the commands, their arguments, and what ends as which exit code
    _exit_codes  the exit codes
    _output      lines, progress and tables for people; JSON lines for programs
    demo         a payment and a thousand payouts, checked against the books
    payouts      a file of payouts, each row paid at most once
    sandbox      the simulated service until Ctrl-C, or around one command
    webhooks     a receiver for the desk; a delivery of the simulated service once more

A command is a module or package, added to `_app.COMMANDS`.

Commands import the client and the sandbox when they run, so that `payments --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .._version import with_extra
from ._exit_codes import Exit


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (`sys.argv` when None) and give its exit code, see `_exit_codes.Exit`."""
    try:
        from ._app import run
    except ModuleNotFoundError as missing:
        if missing.name not in ("cyclopts", "rich"):
            raise
        print(f"payments needs {missing.name}: {with_extra('cli')}", file=sys.stderr)
        return Exit.USAGE
    return run(sys.argv[1:] if argv is None else argv)
