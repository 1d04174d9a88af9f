"""Runs a payouts command: its event loop, client and signals, and errors that end as one message.

The first SIGTERM or Ctrl-C ends the work in order, the second at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from functools import partial
from logging import LogRecord
from typing import Any, Final

import attrs
from rich.console import Console
from rich.live import Live

from ..._emitter import logger
from ..._request.notify import CANCELLED
from ...bulk.errors import BulkError, LedgerUnavailable, access_problem
from ...client import AsyncPayments
from ...errors import APIConnectionError, APIStatusError, PaymentsError
from .._exit_codes import CommandEnded, Exit, exit_of, message_for
from .._output import JsonLines, OutputConsole, Show
from .._text import write_nowhere
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
    reason: str | None = None  # the first signal; None when there was none

    @contextmanager
    def draining(self, drain: Callable[[str], object]) -> Iterator[None]:
        """Within it the first signal calls `drain` with its name; the next one cancels the task."""
        self._drain = drain
        try:
            yield
        finally:
            self._drain = None

    def on_signal(self, name: str) -> None:
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
        for number, name in _NAMES.items():
            try:
                self._loop.add_signal_handler(number, self.on_signal, name)
            except NotImplementedError:  # a loop of Windows: the handler wakes it
                signal.signal(number, partial(self._between_steps, name))

    def _between_steps(self, name: str, *_: object) -> None:
        self._loop.call_soon_threadsafe(self.on_signal, name)

    def close(self) -> None:
        """Stop handling the signals. A second call does nothing."""
        for number in _NAMES:
            try:
                self._loop.remove_signal_handler(number)
            except NotImplementedError:
                is_ctrl_c = number == signal.SIGINT
                signal.signal(number, signal.default_int_handler if is_ctrl_c else signal.SIG_DFL)


_SPARE: Final = 32  # connections for reads, besides those for payouts
_CLOSED: Final = "the reader of the output left"
_APP: Final = "payouts-cli"
_TEXT_EVERY: Final = 30.0
"""Seconds between two lines of progress as text, without a terminal."""


@attrs.frozen
class CommandContext:
    """A command's output, and its signals."""

    console: Console
    show: Show
    as_json: bool
    interrupts: Interrupts

    @contextmanager
    def progress(self, name: str) -> Iterator[ProgressView]:
        """A bar on a terminal, which disappears at the end; else lines."""
        if self.as_json or not self.console.is_terminal:
            yield LinesView(self.show, 1.0 if self.as_json else _TEXT_EVERY)
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

    Each of its JSON lines names the file or ledger that it is `about`. `lines`: it shows its progress, and
    stops in order when the reader of its output leaves. Raises CommandEnded, or PaymentsError as the message.
    """

    async def run() -> Exit:
        task = asyncio.current_task()
        assert task is not None
        interrupts = Interrupts(task, asyncio.get_running_loop())
        left = _stopper(interrupts) if lines else None
        console = OutputConsole(left, highlight=False)
        show: Show = JsonLines(about, left) if as_json else Show(console)
        interrupts.open()
        try:
            return await _ended_with_a_message(
                work, CommandContext(console, show, as_json, interrupts), about
            )
        finally:
            interrupts.close()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(run())


async def _ended_with_a_message(
    work: Callable[[CommandContext], Awaitable[Exit]], context: CommandContext, about: str
) -> Exit:
    """Do the work. An error that ends it is raised in an operator's words, with its facts for programs."""
    try:
        return await work(context)
    except asyncio.CancelledError:
        if not context.interrupts.caught():
            raise
        text = f"stopped by {context.interrupts.reason}; {RESUME}"
        raise CommandEnded(text, Exit.RESUMABLE, about=about) from None
    except (CommandEnded, PaymentsError) as error:
        text, code = _for_operators(error)
        cause = error.__cause__ or error if isinstance(error, CommandEnded) else error
        raise CommandEnded(text, code, about=about, **error_facts(cause)) from error


def _stopper(interrupts: Interrupts) -> Callable[[], None]:
    """Make the function for a reader that leaves, as `head` does: it stops in order, as SIGTERM does."""
    loop = asyncio.get_running_loop()

    def left() -> None:
        write_nowhere()
        loop.call_soon(interrupts.on_signal, _CLOSED)

    return left


def _for_operators(error: CommandEnded | PaymentsError) -> tuple[str, Exit]:
    """An error's message for operators, with options instead of arguments, and its exit code."""
    if isinstance(error, CommandEnded):
        return error.text, error.code
    if isinstance(error, BulkError):
        return message_of(error), Exit.RESUMABLE if isinstance(error, LedgerUnavailable) else Exit.USAGE
    problem = access_problem(error) if isinstance(error, APIStatusError | APIConnectionError) else None
    if problem is not None:
        return f"{problem}; then run the same command again", Exit.USAGE
    if code_of(error) is Exit.RESUMABLE:
        return f"{error}; {RESUME}", Exit.RESUMABLE
    return message_for(error), exit_of(error)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop


@asynccontextmanager
async def open_client(
    base_url: str | None, *, concurrency: int = 0, insecure_database: bool = False
) -> AsyncIterator[AsyncPayments]:
    """A client with the key of PAYMENTS_API_KEY and a connection for each row that can be under way.

    `insecure_database`: a limit store on another host may be used without a checked certificate.
    Raises CommandEnded or ConfigurationError.
    """
    if not os.environ.get("PAYMENTS_API_KEY"):
        missing = "no API key: set PAYMENTS_API_KEY to the project's secret key (sk_live_… or sk_sandbox_…)"
        raise CommandEnded(missing, Exit.USAGE)
    if not (base_url or os.environ.get("PAYMENTS_BASE_URL")):
        missing = "no base URL: pass --base-url or set PAYMENTS_BASE_URL to the address that ends in /v1"
        raise CommandEnded(missing, Exit.USAGE)
    logger.addFilter(_is_unknown)
    try:
        most, insecure = concurrency + _SPARE, insecure_database
        async with AsyncPayments(
            base_url=base_url, app_info=_APP, max_connections=most, insecure_database=insecure
        ) as client:
            yield client
    finally:
        logger.removeFilter(_is_unknown)


def _is_unknown(record: LogRecord) -> bool:
    """Filter warnings: rows that a second signal cuts off need none, as the ledger has them."""
    return CANCELLED not in record.getMessage()
