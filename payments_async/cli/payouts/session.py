"""What every payouts command runs in: an event loop, a client, signals, and errors that end as one message.

The first SIGTERM or Ctrl-C ends the work in order, the second at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from logging import LogRecord
from typing import Any, Final, TypeVar

import attrs
from rich.console import Console

from ..._request.notify import CANCELLED
from ..._runtime import SYSTEM
from ...bulk import BatchReport, OutcomesUnrecorded, Progress
from ...bulk._files import write_text
from ...bulk.errors import BulkError
from ...bulk.ledger_errors import LedgerBroken, LedgerDamaged, LedgerFull, LedgerGone, LedgerReadOnly
from ...bulk.protocol.responses import is_shut_out, why
from ...client import AsyncPayments
from ...errors import APIConnectionError, APIStatusError, PaymentsError
from ...events import logger
from ...models._masking import clean
from .._exit_codes import CommandEnded, Exit, exit_of
from .._output import JsonLines, OutputConsole, Show, Terminal, write_nowhere
from . import files
from .amounts import plain
from .messages import code_of, facts, told
from .progress import ProgressView
from .summary import ArrivedCounts as EndedPayouts
from .summary import BatchFigures

_NAMES: Final = {signal.SIGINT: "Ctrl-C", signal.SIGTERM: "SIGTERM"}


@attrs.define(eq=False)
class Interrupts:
    """What signals do to the task that listens for them (`listening`)."""

    _task: asyncio.Task[object]
    _loop: asyncio.AbstractEventLoop
    _drain: Callable[[str], object] | None = None
    _drained: bool = False
    _is_cut: bool = False
    reason: str | None = None
    """The first signal; None when there was none."""

    @contextmanager
    def draining(self, drain: Callable[[str], object]) -> Iterator[None]:
        """While inside, the first signal calls `drain` with its name; the next one cancels the task."""
        self._drain = drain
        try:
            yield
        finally:
            self._drain = None

    def came(self, name: str) -> None:
        """A signal came."""
        self.reason = self.reason or name
        if self._drain is not None and not self._drained:
            self._drained = True
            self._drain(name)
        elif not self._is_cut:
            self._is_cut = True
            self._task.cancel()

    def caught(self) -> bool:
        """Whether a cancellation that has just been caught was a signal's; then it is over."""
        return self._is_cut and self._task.uncancel() == 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a person is asked, which holds the loop up: both signals raise KeyboardInterrupt."""
        self.close()
        before = {number: signal.signal(number, signal.default_int_handler) for number in _NAMES}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        self.open()  # not after an interrupt: a loop may still have it in store, and it was acted on

    def open(self) -> None:
        """Begin to listen."""
        for number, name in _NAMES.items():
            self._loop.add_signal_handler(number, self.came, name)

    def close(self) -> None:
        """Listen no more. A second call does nothing."""
        for number in _NAMES:
            self._loop.remove_signal_handler(number)


@contextmanager
def listening() -> Iterator[Interrupts]:
    """Take SIGTERM and SIGINT for the running task."""
    task = asyncio.current_task()
    assert task is not None
    interrupts = Interrupts(task, asyncio.get_running_loop())
    interrupts.open()
    try:
        yield interrupts
    finally:
        interrupts.close()


R = TypeVar("R")
_LONG: Final = 40
_BESIDE: Final = 32
"""Connections for what is read beside the payouts."""
_CLOSED: Final = "the reader of the output, which has gone"
_APP: Final = "payouts-cli"
_FAILED: Final = (LedgerBroken, LedgerDamaged, LedgerGone, LedgerReadOnly)
"""With payouts under way, these leave open what the ledger knows."""


@attrs.frozen
class CommandContext:
    """Where a command speaks, and what can stop it."""

    console: Console
    show: Show
    as_json: bool
    interrupts: Interrupts


def perform(
    work: Callable[[CommandContext], Coroutine[Any, Any, Exit]], *, as_json: bool, lines: bool = False
) -> Exit:
    """Do the work on an event loop of its own, uvloop's when it is installed.

    `lines`: JSON lines not only when asked for, but wherever there is no terminal; a reader of theirs that
    leaves stops the work in order.

    Raises Ended, and PaymentsError for what ends it with a message of its own.
    """
    console = OutputConsole(highlight=False)
    as_json = as_json or (lines and not console.is_terminal)
    show: Show = JsonLines() if as_json else Terminal(console)
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        return runner.run(_stopped_in_order(work, console, show, as_json=as_json, lines=lines))


async def _stopped_in_order(
    work: Callable[[CommandContext], Awaitable[Exit]],
    console: Console,
    show: Show,
    *,
    as_json: bool,
    lines: bool,
) -> Exit:
    with listening() as interrupts:
        show = _watched(interrupts) if as_json and lines else show
        try:
            return await work(CommandContext(console, show, as_json, interrupts))
        except asyncio.CancelledError:
            if not interrupts.caught():
                raise
            text = f"stopped by {interrupts.reason}; the same command goes on where it stopped"
            raise _refused(CommandEnded(text, Exit.RESUMABLE), show, as_json=as_json) from None
        except (CommandEnded, PaymentsError) as error:
            raise _refused(error, show, as_json=as_json) from error


def _watched(interrupts: Interrupts) -> JsonLines:
    """Lines whose reader may leave, as `head` does: that stops the work in order, as SIGTERM would."""
    loop = asyncio.get_running_loop()

    def left() -> None:
        write_nowhere()
        loop.call_soon(interrupts.came, _CLOSED)

    return JsonLines(left)


def _refused(
    error: CommandEnded | PaymentsError, show: Show, *, as_json: bool
) -> CommandEnded | PaymentsError:
    """What ends the command, told to programs too; an operator's words for what the library says."""
    if isinstance(error, BulkError):
        ends: CommandEnded | PaymentsError = CommandEnded(told(error), Exit.USAGE)
    elif isinstance(error, APIStatusError | APIConnectionError) and is_shut_out(error):
        ends = CommandEnded(f"{why(error)}; then run the same command again", Exit.USAGE)
    elif isinstance(error, PaymentsError) and code_of(error) is Exit.RESUMABLE:
        ends = CommandEnded(f"{error}; the same command goes on where it stopped", Exit.RESUMABLE)
    else:
        ends = error
    text, code = (ends.text, ends.code) if isinstance(ends, CommandEnded) else (str(ends), exit_of(ends))
    if as_json:
        cause = error.__cause__ or error if isinstance(error, CommandEnded) else error
        show.step("Refused", "", good=False, message=text, exit_code=int(code), **facts(cause))
    return ends


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if find_spec("uvloop") is None:
        return None
    import uvloop

    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


@asynccontextmanager
async def paying(base_url: str | None, *, concurrency: int = 0) -> AsyncIterator[AsyncPayments]:
    """A client with the key of PAYMENTS_API_KEY, and a connection for each row that can be under way.

    Raises Ended or ConfigurationError.
    """
    if not os.environ.get("PAYMENTS_API_KEY"):
        missing = "no API key: set PAYMENTS_API_KEY to the project's secret key (sk_live_… or sk_sandbox_…)"
        raise CommandEnded(missing, Exit.USAGE)
    if not (base_url or os.environ.get("PAYMENTS_BASE_URL")):
        missing = "no base URL: pass --base-url or set PAYMENTS_BASE_URL to the address that ends in /v1"
        raise CommandEnded(missing, Exit.USAGE)
    connections = concurrency + _BESIDE
    logger.addFilter(_is_news)
    try:
        async with AsyncPayments(base_url=base_url, app_info=_APP, max_connections=connections) as client:
            yield client
    finally:
        logger.removeFilter(_is_news)


def _is_news(record: LogRecord) -> bool:
    """Whether a warning is shown: rows that a second signal cuts off are in the ledger, and counted."""
    return CANCELLED not in record.getMessage()


async def recorded(ledger: str, running: Awaitable[R]) -> R:
    """What works on the service and the ledger, with the ledger's failures told as what they mean.

    Raises Ended when the ledger failed with payouts under way.
    """
    try:
        return await running
    except OutcomesUnrecorded as error:
        raise CommandEnded(f"{error}. {_kept(ledger, error)}", _code_unrecorded(error)) from error
    except LedgerFull as error:  # what was sent is recorded; an intent that is not was not sent
        raise CommandEnded(told(error), Exit.RESUMABLE) from error
    except _FAILED as error:
        raise CommandEnded(told(error), Exit.OUTCOME_UNKNOWN) from error


def _code_unrecorded(error: OutcomesUnrecorded) -> Exit:
    """A full disk is soon mended; a ledger that failed otherwise is looked at first."""
    return Exit.RESUMABLE if isinstance(error.__cause__, LedgerFull) else Exit.OUTCOME_UNKNOWN


def _kept(ledger: str, error: OutcomesUnrecorded) -> str:
    path = files.unrecorded_of(ledger)
    try:
        write_text(path, error.to_json())
    except OSError:
        print(error.to_json(), flush=True)
        return "They are on the standard output, as JSON"
    return f"They are in {path}, as JSON"


def figures_of(progress: Progress) -> BatchFigures:
    """The figures of a batch's progress or report; a report knows how payouts have ended, too."""
    ended = None
    if isinstance(progress, BatchReport):
        ended = EndedPayouts(progress.finals.get("completed", 0), progress.failed, progress.awaited)
    activity = None if progress.activity is None else attrs.asdict(progress.activity)
    return BatchFigures.of(progress.counts, progress.sums, ended, activity)


def watching(board: ProgressView) -> Callable[[Progress], None]:
    """An `on_progress` that shows it."""
    return lambda progress: board.show(figures_of(progress), SYSTEM.monotonic())


def tell_next(todo: Iterable[str]) -> None:
    """What to know and do, on stderr: a line for each."""
    for sentence in todo:
        print(f"payments: {clean(sentence)}", file=sys.stderr)


def title_of(batch_id: str) -> str:
    """The batch for people: a hash by its beginning."""
    return f"batch {batch_id[:12]}…" if len(batch_id) > _LONG else f"batch {batch_id}"


def result(report: BatchReport, code: int, todo: Iterable[str]) -> dict[str, Any]:
    """A report's facts for programs, with the exit code and what to do next."""
    facts = figures_of(report).facts()
    return {
        "batch_id": report.batch_id,
        **facts,
        "complete": report.complete,
        "balanced": report.balanced,
        "stopped": report.stopped,
        "resumable": report.resumable,
        "payable": {currency: plain(total) for currency, total in sorted(report.payable.items())},
        "finals": dict(report.finals),
        "exit_code": int(code),
        "next": " ".join(todo),
    }
