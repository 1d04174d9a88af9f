"""The `payments` command.

    _app           the commands, and the exit code and message of each error
    _exit_codes    the exit codes
    _help          the examples and exit codes at the end of each command's help
    _requirements  the extras that a command needs
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
from .._version import __version__
from ._exit_codes import Exit
from ._requirements import asks_for_help, help_without_libraries, required_extras
from ._text import print_message


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (`sys.argv` when None) and return its exit code (`_exit_codes.Exit`)."""
    words = sys.argv[1:] if argv is None else list(argv)
    try:
        extras = required_extras(words)
        if missing_libraries(extras):
            return _print_what_is_missing(words, extras)
        from ._app import run
    except KeyboardInterrupt:  # its libraries take most of a second to load
        print_message("stopped")
        return Exit.INTERRUPTED
    return run(words)


def _print_what_is_missing(words: Sequence[str], extras: Sequence[str]) -> int:
    """Print what to install, in one line unless help is asked for, and return the exit code."""
    if words == ["--version"]:
        print(__version__)
        return Exit.DONE
    if not words or asks_for_help(words):
        print(help_without_libraries(), file=sys.stdout if words else sys.stderr)
        return Exit.DONE if words else Exit.USAGE
    name = next((f" {word}" for word in words if not word.startswith("-")), "")
    print_message(needs(f"payments{name} needs", *extras), "")
    return Exit.USAGE
