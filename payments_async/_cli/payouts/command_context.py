"""Runs a payouts command: its event loop, client and signals, and errors that end as one message.

The first SIGTERM or Ctrl-C ends the work in order, the second at once.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext
from importlib.util import find_spec
from logging import LogRecord
from pathlib import Path
from typing import Any, Final, TypeVar

import attrs
from rich.console import Console
from rich.live import Live

from ..._emitter import logger
from ..._files import write_text
from ..._request.notify import CANCELLED
from ..._runtime import SYSTEM
from ...bulk import AnyBatch, BatchDatabase, BatchFigures, Cause, OutcomesUnrecorded
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk.errors import BulkError, access_problem
from ...bulk.ledger_errors import (
    LedgerBroken,
    LedgerDamaged,
    LedgerFull,
    LedgerGone,
    LedgerMissing,
    LedgerOfAnotherBatch,
    LedgerReadOnly,
    LedgerUnavailable,
)
from ...client import AsyncPayments
from ...errors import APIConnectionError, APIStatusError, PaymentsError
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit, exit_of
from .._output import JsonLines, OutputConsole, Show, Terminal
from .._text import print_message, write_nowhere
from .messages import RESUME, code_of, error_facts, message_of
from .progress import BarView, LinesView, ProgressView

_NAMES: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


@attrs.define(eq=False)
class Interrupts:
    """Handles SIGTERM and Ctrl-C for a task."""

    _task: asyncio.Task[object]
    _loop: asyncio.AbstractEventLoop
    _drain: Callable[[str], object] | None = None
    _drained: bool = False
    _is_cut: bool = False
    reason: str | None = None
    """The first signal; None when there was none."""
    is_answered: bool = False
    """True once the write of a single call was answered."""

    @contextmanager
    def draining(self, drain: Callable[[str], object]) -> Iterator[None]:
        """Within it the first signal calls `drain` with its name; the next one cancels the task."""
        self._drain = drain
        try:
            yield
        finally:
            self._drain = None

    def on_signal(self, name: str) -> None:
        """Act on a signal."""
        self.reason = self.reason or name
        if self._drain is not None and not self._drained:
            self._drained = True
            self._drain(name)
        elif not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    def caught(self) -> bool:
        """Return whether a signal caused the caught cancellation. If so, end the cancellation."""
        return self._is_cut and self._task.uncancel() == 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Both signals raise KeyboardInterrupt while a person types, which blocks the loop."""
        self.close()
        before = {number: signal.signal(number, signal.default_int_handler) for number in _NAMES}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.open()  # not after an interrupt: the loop may still have it queued

    def open(self) -> None:
        """Handle the signals."""
        for number, name in _NAMES.items():
            self._loop.add_signal_handler(number, self.on_signal, name)

    def close(self) -> None:
        """Stop handling the signals. A second call does nothing."""
        for number in _NAMES:
            self._loop.remove_signal_handler(number)


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Handle SIGTERM and SIGINT for the running task."""
    task = asyncio.current_task()
    assert task is not None
    interrupts = Interrupts(task, asyncio.get_running_loop())
    interrupts.open()
    try:
        yield interrupts
    finally:
        interrupts.close()


R = TypeVar("R")
_SPARE: Final = 32
"""Connections for reads, besides those for payouts."""
_CLOSED: Final = "the reader of the output left"
_APP: Final = "payouts-cli"
_TEXT_EVERY: Final = 30.0
"""Seconds between two lines of progress as text, without a terminal."""
_UNSURE: Final = (LedgerBroken, LedgerDamaged, LedgerGone, LedgerReadOnly)
"""After these, with payouts under way, it is unknown what the ledger holds."""
_PASSING: Final = (LedgerFull, LedgerUnavailable)
"""After these the ledger is as it was recorded last, and the same command goes on later."""


@attrs.frozen
class CommandContext:
    """A command's output, and its signals."""

    console: Console
    show: Show
    as_json: bool
    interrupts: Interrupts
    on_page: Callable[[str, ProgressView], AbstractContextManager[ProgressView]] | None = None
    """Makes a view of a part of the work that the batch's page shows too."""

    @contextmanager
    def progress(self, name: str) -> Iterator[ProgressView]:
        """A bar on a terminal, which disappears at the end; else lines. And the batch's page."""
        with self._view(name) as view:
            if self.on_page is None:
                yield view
                return
            with self.on_page(name, view) as both:
                yield both

    @contextmanager
    def _view(self, name: str) -> Iterator[ProgressView]:
        if self.as_json or not self.console.is_terminal:
            with closing(LinesView(self.show, 1.0 if self.as_json else _TEXT_EVERY)) as lines:
                yield lines
            return
        bar = BarView(name)
        with Live(bar, console=self.console, refresh_per_second=8, transient=True):
            yield bar

    def spinner(self, text: str) -> AbstractContextManager[object]:
        """A spinner for work without figures."""
        if self.as_json or not self.console.is_terminal:
            return nullcontext()
        return self.console.status(f"{text}…", spinner="dots")


def perform(
    work: Callable[[CommandContext], Coroutine[Any, Any, Exit]],
    *,
    about: str,
    as_json: bool,
    lines: bool = False,
) -> Exit:
    """Do the work on an event loop of its own, uvloop's when it is installed.

    Args:
        work: the command.
        about: the file or ledger that it is about, in each of its JSON lines.
        as_json: JSON instead of text.
        lines: it shows its progress; when the reader of its output leaves, the work stops in order.

    Raises:
        CommandEnded: it ends early, with a message and an exit code.
        PaymentsError: it ends early, and the error is the message.
    """

    async def run() -> Exit:
        with listening() as interrupts:
            left = _stopper(interrupts) if lines else None
            console = OutputConsole(left, highlight=False)
            show: Show = JsonLines(about, left) if as_json else Terminal(console)
            return await _ended_with_a_message(work, CommandContext(console, show, as_json, interrupts))

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(run())


async def _ended_with_a_message(
    work: Callable[[CommandContext], Awaitable[Exit]], context: CommandContext
) -> Exit:
    """Do the work. An error that ends it is shown to programs, and raised in an operator's words."""
    try:
        return await work(context)
    except asyncio.CancelledError:
        if not context.interrupts.caught():
            raise
        text = f"stopped by {context.interrupts.reason}; {RESUME}"
        stopped = CommandEnded(text, Exit.RESUMABLE)
        _show_refusal(stopped, stopped, context)
        raise stopped from None
    except (CommandEnded, PaymentsError) as error:
        ended = _for_operators(error)
        _show_refusal(ended, error, context)
        raise ended from error


def _stopper(interrupts: Interrupts) -> Callable[[], None]:
    """Make the function for a reader that leaves, as `head` does: it stops in order, as SIGTERM does."""
    loop = asyncio.get_running_loop()

    def left() -> None:
        write_nowhere()
        loop.call_soon(interrupts.on_signal, _CLOSED)

    return left


def _for_operators(error: CommandEnded | PaymentsError) -> CommandEnded | PaymentsError:
    """Rewrite an error's message for operators, with options instead of arguments."""
    if isinstance(error, LedgerOfAnotherBatch) and error.only_opened:
        return CommandEnded(str(error), Exit.USAGE)  # nothing is resumed or paid
    if isinstance(error, BulkError):
        code = Exit.RESUMABLE if isinstance(error, LedgerUnavailable) else Exit.USAGE
        return CommandEnded(message_of(error), code)
    problem = access_problem(error) if isinstance(error, APIStatusError | APIConnectionError) else None
    if problem is not None:
        return CommandEnded(f"{problem}; then run the same command again", Exit.USAGE)
    if isinstance(error, PaymentsError) and code_of(error) is Exit.RESUMABLE:
        return CommandEnded(f"{error}; {RESUME}", Exit.RESUMABLE)
    return error


def _show_refusal(
    ended: CommandEnded | PaymentsError, error: CommandEnded | PaymentsError, context: CommandContext
) -> None:
    """A JSON line with what ended the command."""
    if not context.as_json:
        return
    code = ended.code if isinstance(ended, CommandEnded) else exit_of(ended)
    cause = error.__cause__ or error if isinstance(error, CommandEnded) else error
    facts = {"message": str(ended), "exit_code": int(code), **error_facts(cause)}
    context.show.step("Refused", "", good=False, **facts)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if find_spec("uvloop") is None:
        return None
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


@asynccontextmanager
async def open_client(
    base_url: str | None, *, concurrency: int = 0, store: str | None = None, insecure_database: bool = False
) -> AsyncIterator[AsyncPayments]:
    """A client with the key of PAYMENTS_API_KEY and a connection for each row that can be under way.

    Its rate limit is shared through `store`; `insecure_database`: on another host too, without verified TLS.
    Raises CommandEnded or ConfigurationError.
    """
    if not os.environ.get("PAYMENTS_API_KEY"):
        missing = "no API key: set PAYMENTS_API_KEY to the project's secret key (sk_live_… or sk_sandbox_…)"
        raise CommandEnded(missing, Exit.USAGE)
    if not (base_url or os.environ.get("PAYMENTS_BASE_URL")):
        missing = "no base URL: pass --base-url or set PAYMENTS_BASE_URL to the address that ends in /v1"
        raise CommandEnded(missing, Exit.USAGE)
    connections = concurrency + _SPARE
    logger.addFilter(_is_unknown)
    try:
        async with AsyncPayments(
            base_url=base_url,
            app_info=_APP,
            max_connections=connections,
            limit_store=store,
            insecure_database=insecure_database,
        ) as client:
            yield client
    finally:
        logger.removeFilter(_is_unknown)


@asynccontextmanager
async def open_database(ledger: LedgerAddress) -> AsyncIterator[BatchDatabase]:
    """Context of a connection to a ledger's database. Raises CommandEnded without tables, LedgerError."""
    try:
        async with BatchDatabase.open(ledger.text, insecure_database=ledger.is_insecure) as database:
            yield database
    except LedgerMissing:
        problem = f"{ledger.shown}: holds no ledger's tables; the first `run` makes them, or `ledger init`"
        raise CommandEnded(problem, Exit.USAGE) from None


def _is_unknown(record: LogRecord) -> bool:
    """Filter warnings: rows that a second signal cuts off need none, as the ledger has them."""
    return CANCELLED not in record.getMessage()


async def ledger_work(ledger: LedgerAddress, running: Awaitable[R]) -> R:
    """Await work on the service and the ledger. The message says what a failure of the ledger means.

    Raises CommandEnded when the ledger failed with payouts under way.
    """
    try:
        return await running
    except OutcomesUnrecorded as error:
        may_pass = isinstance(error.__cause__, _PASSING)  # make room and resume; else look at it first
        code = Exit.RESUMABLE if may_pass else Exit.OUTCOME_UNKNOWN
        raise CommandEnded(f"{error}. {_save_outcomes(ledger, error)}", code) from error
    except _PASSING as error:  # what was sent is recorded; an intent that is not was not sent
        raise CommandEnded(message_of(error), Exit.RESUMABLE) from error
    except _UNSURE as error:
        raise CommandEnded(message_of(error), Exit.OUTCOME_UNKNOWN) from error


def _save_outcomes(ledger: LedgerAddress, error: OutcomesUnrecorded) -> str:
    """Write what the ledger could not record beside it, or print it. Returns where it is."""
    path = ledger.beside("unrecorded.json")
    try:
        write_text(path, error.to_json())
    except OSError:
        print(error.to_json(), flush=True)
        return "They are on the standard output, as JSON"
    return f"They are in {path}, as JSON"


def read_status(ledger: LedgerAddress) -> dict[str, Any]:
    """The status file of a ledger's run (`LEDGER.status.json`); empty when it cannot be read."""
    try:
        status = json.loads(Path(f"{ledger.text}.status.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return status if isinstance(status, dict) and isinstance(status.get("rows"), dict) else {}


def updater(view: ProgressView) -> Callable[[BatchFigures], None]:
    """An `on_progress` that updates the view."""
    return lambda figures: view.show(figures, SYSTEM.monotonic())


async def causes_of(batch: AnyBatch) -> tuple[Cause, ...]:
    """The rows to look at by cause; none where the ledger cannot be read any longer."""
    try:
        return await batch.causes(0)
    except PaymentsError:
        return ()


def print_next_steps(steps: Iterable[str]) -> None:
    """Print advice on stderr, a line for each."""
    for sentence in steps:
        print_message(clean(sentence))
