"""The `payments` command.

    _app           the commands, and the exit code and message of each error
    _exit_codes    the exit codes
    _output        lines, progress and tables for people; JSON lines for programs
    _text          wraps text for people; messages on stderr
    calls          one checkout, one payout, one request from the shell
    demo           a payment and a thousand payouts, compared with the books
    doctor         checks of the set-up, as a report for a ticket
    guard          a guard on money: its rules and its sums
    mcp            the simulated service for coding agents, over the Model Context Protocol
    payouts        a file of payouts, each row paid at most once
    sandbox        the simulated service until Ctrl-C, or around one command
    webhooks       a local receiver; sending a delivery of the simulated service again

A command is a package, listed in `_app.COMMANDS`. Commands import the client and the sandbox when they run,
so that `payments --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .._extras import missing_libraries, needs
from ._exit_codes import Exit
from ._text import print_message


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (`sys.argv` when None) and return its exit code (`_exit_codes.Exit`)."""
    try:
        from ._app import run
    except ImportError:
        if not missing_libraries(["cli"]):
            raise
        print_message(needs("payments needs", "cli"), "")
        return Exit.USAGE
    except KeyboardInterrupt:  # its libraries take most of a second to load
        print_message("stopped")
        return Exit.INTERRUPTED
    return run(sys.argv[1:] if argv is None else argv)
