"""The commands of `payments`, and the exit code and message of each error."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from cyclopts import App, CycloptsError, UnusedCliTokensError

from .._version import __version__
from ..errors import ConfigurationError, PaymentsError
from ._exit_codes import CommandEnded, Exit, exit_of
from ._output import OutputConsole
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
    """The command line, ready to be called with its arguments."""
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
    """Run one command line and give its exit code; errors become one line on stderr."""
    _write_anything()
    try:
        code: int | None = make_app()(argv, exit_on_error=False, print_error=False)
        sys.stdout.flush()  # what cannot be written fails here, with a message
    except CycloptsError as error:
        command = " ".join(("payments", *(error.command_chain or ())))
        hint = f"`{command} --help` shows how it is used"
        if command == "payments sandbox exec" and "--" not in argv:  # it took its command's option as its own
            hint = "put -- before the command: `payments sandbox exec -- python first.py`"
        return _print_error(f"{usage_text(error)}; {hint}".replace("?; ", "? "), Exit.USAGE)
    except CommandEnded as end:
        return _print_error(end.text, end.code)
    except ConfigurationError as error:  # of an option or a variable, which it names
        return _print_error(str(error), exit_of(error))
    except PaymentsError as error:
        return _print_error(f"{type(error).__name__}: {error}", exit_of(error))
    except ImportError as missing:
        if missing.__cause__ is None:  # not one of ours, which name the extra to install
            raise
        return _print_error(str(missing), Exit.USAGE)
    except BrokenPipeError:
        _leave_nothing_to_write()
        return Exit.READER_LEFT
    except OSError as failure:
        _write_what_can_be_written()
        return _print_error(failure.strerror or str(failure), Exit.REFUSED)
    except KeyboardInterrupt:
        return _print_error("stopped", Exit.INTERRUPTED)
    return Exit.DONE if code is None else code  # --help and --version give None


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


def _print_error(text: str, code: Exit) -> Exit:
    print_message(text)
    return code


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
