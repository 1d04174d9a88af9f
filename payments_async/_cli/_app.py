"""The commands of `payments`, and the exit code and message of each error."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final

from cyclopts import App, CycloptsError, UnusedCliTokensError

from .._version import __version__
from ..errors import PaymentsError
from ._exit_codes import CommandEnded, Exit, exit_of, message_for
from ._output import JsonLines, OutputConsole
from ._text import print_message, text_width, write_nowhere
from .calls import api, checkouts
from .demo import demo
from .doctor import doctor
from .guard import guard
from .mcp import mcp
from .payouts import payouts
from .sandbox import sandbox
from .webhooks import webhooks

COMMANDS: tuple[Callable[..., int] | App, ...] = (
    api,
    checkouts,
    demo,
    doctor,
    guard,
    mcp,
    payouts,
    sandbox,
    webhooks,
)
"""Each gives its exit code; its docstring is its help. An `App` has commands of its own."""

_EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 refused, 2 usage, 3 outcome unknown, 75 stopped and resumable, "
    "130 interrupted by Ctrl-C, 141 the reader of the output left."
)
"""At the end of each help, unless a command explains its own."""
_MISSING: Final = re.compile(r'(?:Command ".*" parameter|Parameter) (\S+) requires an argument')
_SENTENCE_END: Final = re.compile(r"(?:\.|(?<=\?)) ")


def make_app() -> App:
    app = App(
        name="payments",
        help="Collect payments and send payouts.",
        version=__version__,
        help_epilogue=_EXIT_CODES,
        help_format="markdown",
        result_action="return_value",
        suppress_keyboard_interrupt=False,
        console=OutputConsole(width=text_width()),
    )
    for command in COMMANDS:
        app.command(command)
    app.register_install_completion_command(
        help="Install completion for your shell; changes none of its start files.", add_to_startup=False
    )
    return app


def run(argv: Sequence[str]) -> int:
    """Run one command line and give its exit code. An error is told once: as JSON where that is asked for."""
    _write_anything()
    try:
        code: int | None = make_app()(argv, exit_on_error=False, print_error=False)
        sys.stdout.flush()  # what cannot be written fails here, with a message
    except BrokenPipeError:
        _leave_nothing_to_write()
        return Exit.READER_LEFT
    except KeyboardInterrupt:
        return _tell(CommandEnded("stopped", Exit.INTERRUPTED), argv)
    except (CycloptsError, CommandEnded, PaymentsError, ImportError, OSError) as error:
        return _tell(_refusal(error, argv), argv)
    return Exit.DONE if code is None else code  # --help and --version give None


def _refusal(error: Exception, argv: Sequence[str]) -> CommandEnded:
    """The error that ended a command, in an operator's words. Raises what is none of ours."""
    match error:
        case CommandEnded():
            return error
        case CycloptsError():
            return CommandEnded(_wrong_usage(error, argv), Exit.USAGE)
        case PaymentsError():
            return CommandEnded(message_for(error), exit_of(error), kind=type(error).__name__)
        case OSError():
            return CommandEnded(error.strerror or str(error), Exit.REFUSED)
    if error.__cause__ is None:  # ours name the extra to install
        raise error
    return CommandEnded(str(error), Exit.USAGE)


def _tell(refusal: CommandEnded, argv: Sequence[str]) -> Exit:
    """Tell why a command has ended, on one stream: on stderr, unless JSON is asked for and can be written."""
    if "--json" in takewhile(lambda word: word != "--", argv):
        facts: dict[str, Any] = {"message": refusal.text, "exit_code": int(refusal.code)}
        facts |= {"kind": "CommandEnded", **refusal.facts}
        with suppress(OSError):
            JsonLines(str(facts.pop("about", ""))).step("Refused", "", good=False, **facts)
            return refusal.code
    _write_what_can_be_written()
    print_message(refusal.text)
    return refusal.code


def _wrong_usage(error: CycloptsError, argv: Sequence[str]) -> str:
    command = " ".join(("payments", *(error.command_chain or ())))
    hint = f"`{command} --help` shows how it is used"
    if command == "payments sandbox exec" and "--" not in argv:  # it took its command's option as its own
        hint = "put -- before the command: `payments sandbox exec -- python first.py`"
    return f"{usage_text(error)}; {hint}".replace("?; ", "? ")


def usage_text(error: CycloptsError) -> str:
    """What is wrong with a command line, in the form of other messages: one clause after the other.

    The passwords of addresses among its arguments are hidden first, while they stand as they were given.
    """
    words = error.root_input_tokens or []
    unused = isinstance(error, UnusedCliTokensError) and " ".join(error.unused_tokens or ())
    text = _without_passwords(f"unexpected argument: {unused}" if unused else str(error).strip(), words)
    if missing := _MISSING.match(text):
        is_given = any(word.partition("=")[0] == missing[1] for word in words)
        return f"{missing[1]} {'needs a value' if is_given else 'is missing'}"
    sentences = _SENTENCE_END.split(text.removesuffix("."))
    kept = [each for each in sentences if not each.startswith("Available commands")]
    return "; ".join(each[:1].lower() + each[1:] for each in kept)


def _without_passwords(text: str, words: Sequence[str]) -> str:
    from ..bulk._texts.ledger_address import without_password

    for word in words:
        for given in (word, word.partition("=")[2]):
            shown = without_password(given)
            if shown != given:
                text = text.replace(repr(given), repr(shown)).replace(given, shown)
    return text


def _write_anything() -> None:
    """Print a question mark for each character that the terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _leave_nothing_to_write() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            write_nowhere(stream)


def _write_what_can_be_written() -> None:
    """Flush, so that a full disk does not fail once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        write_nowhere()
