"""The commands of `payments payouts`, with their help."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Final

import attrs
from cyclopts import App, Group, Parameter

from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk.sources import ColumnMapping
from .._exit_codes import CommandEnded, Exit
from .._output import FileName, Flag, JsonFlag
from .._text import print_message
from .options import (
    VARIABLE,
    BaseUrl,
    BatchOptions,
    ConfirmTotal,
    Ledger,
    Moment,
    Path,
    RetryOptions,
    RunOptions,
    States,
    Yes,
    require_address,
)

ONE: Final = Group("One payout", sort_key=1)
"""The help's group of commands about one payout (`_cli/calls/`)."""
payouts: Final = App(
    name="payouts",
    help="Send one payout, or pay a file of them, each row at most once, and see where it stands.",
    group_commands=Group("A batch", sort_key=2),
)
_ANY: Final = BatchOptions()
_ALL: Final = RetryOptions()
_RUN: Final = RunOptions()
_VISIBLE: Final = (
    "the database's password is on the command line, where everybody on this machine can read it: put the "
    f"address into {VARIABLE}, or the password into a password file (PGPASSFILE)"
)
LedgerFirst = Annotated[Ledger, Parameter(help="The ledger, unless --ledger or PAYMENTS_LEDGER names it.")]


def address_of(batch: BatchOptions | RunOptions, otherwise: str | None = None) -> LedgerAddress:
    """The batch that a command is about. Warns of a password among the arguments. Raises CommandEnded."""
    address = require_address(batch.ledger, os.environ, otherwise)
    if address.has_visible_password:
        print_message(_VISIBLE)
    return attrs.evolve(address, batch_id=batch.batch_id, is_insecure=batch.insecure_database)


def perform_on(
    batch: BatchOptions,
    work: Callable[..., Coroutine[Any, Any, Exit]],
    *arguments: object,
    lines: bool = False,
    **options: object,
) -> int:
    """Do the work of a command about a batch: `work(address, *arguments, context, **options)`.

    For `lines` see `perform`, and for what is raised.
    """
    from .command_context import perform

    address = address_of(batch)
    return perform(
        lambda context: work(address, *arguments, context, **options),
        about=address.shown,
        as_json=batch.json,
        lines=lines,
    )


def _with_two(
    first: str | None, second: str | None, batch: BatchOptions, missing: str
) -> tuple[BatchOptions, str]:
    """The batch, and the other argument of a command that has two. Raises CommandEnded without it."""
    if second is not None:
        return attrs.evolve(batch, ledger=first), second
    if first is None or not (batch.ledger or os.environ.get(VARIABLE)):
        raise CommandEnded(missing, Exit.USAGE)
    return batch, first


@payouts.command(help_epilogue="")
def run(
    file: Annotated[FileName | None, Parameter(metavar="FILE")] = None, /, *, order: RunOptions = _RUN
) -> int:
    """Pay the rows of FILE (.csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .xlsx). The same command resumes.

    Each row is paid at most once, whatever dies and whenever. Any number of processes may run one batch:
    without FILE it joins a batch, or an outbox, of the ledger. The key comes from PAYMENTS_API_KEY. A live
    one asks for the total to be typed back before the first payout.

    Exit codes: 0 every row created and certified, 1 complete with rows rejected, payouts that failed or a
    list that does not confirm the ledger, 2 nothing can be sent until you fix what the message names, 3 rows
    in doubt, 75 stopped and the same command resumes, 130 Ctrl-C instead of the total.

    Parameters
    ----------
    file
        The payouts. Columns: `amount`, `currency`, `method`, `instrument.*`, and as you like `row_key`,
        `reference`, `description`, `webhook_url`, `customer.*`, `metadata.*`, `gateway_options`.
    """
    from .command_context import perform
    from .run import pay  # imports the client

    if file is None and not (order.ledger or os.environ.get(VARIABLE)):
        raise CommandEnded("FILE is missing, or the ledger of a batch to join (--ledger)", Exit.USAGE)
    address = address_of(order, None if file is None else f"{file}.ledger")
    mapping = ColumnMapping.from_options(order.map, order.map_file)
    order = attrs.evolve(order, file=file, address=address, mapping=mapping)
    about = file or address.shown
    return perform(lambda context: pay(order, context), about=about, as_json=order.json, lines=True)


@payouts.command
def status(batch: BatchOptions = _ANY) -> int:
    """Where a batch stands, and which processes run it. Needs no key.

    The exit code is 0 wherever it stands: for a script --json has `complete` and the `exit_code` of a run.
    """
    from .inspect import status

    return perform_on(batch, status)


@payouts.command
def watch(batch: BatchOptions = _ANY, *, page: Flag = False) -> int:
    """Follow a batch until it is complete, or Ctrl-C. Needs no key.

    Parameters
    ----------
    page
        Show its page in a browser instead, until Ctrl-C.
    """
    if page:
        from .page import watch_page as watch
    else:
        from .inspect import watch

    return perform_on(batch, watch, lines=True)


@payouts.command
def show(
    ledger: LedgerFirst = None,
    row: Annotated[str | None, Parameter(metavar="ROW")] = None,
    /,
    *,
    batch: BatchOptions = _ANY,
) -> int:
    """One row of a batch: its state, its reference, its payout and what the service said of it. Needs no key.

    Parameters
    ----------
    row
        The row's key, its reference, or its number in the file.
    """
    from .inspect import show_row

    batch, name = _with_two(ledger, row, batch, "show: ROW is missing, a row's key, reference or number")
    return perform_on(batch, show_row, name)


@payouts.command
def export(
    ledger: LedgerFirst = None,
    out: Path | None = None,
    /,
    *,
    batch: BatchOptions = _ANY,
    state: States = None,
    accounts: Flag = False,
    overwrite: Flag = False,
) -> int:
    """Write the rows of a batch, and what became of each, to OUT (.csv, .jsonl, .xlsx, .html).

    Needs no key. Only the owner can read the file (mode 0600). It appears once it is whole. A workbook
    (.xlsx) also has the money by outcome, of all rows, and the latest certificate; .html is its page.
    Exits with 1 if a row could not be read.

    Parameters
    ----------
    out
        The file to write.
    state
        Only rows of which this became; repeat it for more. `created` is `not-final`, `arrived`, `failed`
        and `returned` (arrived first, and came back later) together.
    accounts
        With the recipients' names and account numbers, which are masked otherwise.
    overwrite
        Replace OUT when it is there; else it is refused.
    """
    from .inspect import export

    missing = "export: OUT is missing, the file to write (.csv, .jsonl, .xlsx, .html)"
    batch, path = _with_two(ledger, out, batch, missing)
    return perform_on(batch, export, path, state, accounts=accounts, overwrite=overwrite)


@payouts.command
def template(out: Path, /, *, json: JsonFlag = False) -> int:
    """Write an empty workbook (.xlsx) to fill in: columns of text, so that no digit is lost, and drop-downs.

    Needs no key. A file that is there already is refused. `payments payouts run` pays what was filled in.

    Parameters
    ----------
    out
        The workbook to write, .xlsx.
    """
    from .command_context import perform
    from .inspect import template

    return perform(lambda context: template(out, context), about=out, as_json=json)


@payouts.command
def batches(batch: BatchOptions = _ANY) -> int:
    """The batches of a ledger, the newest first. Needs no key. Exits with 1 if one cannot be read."""
    from .inspect import batches

    return perform_on(batch, batches)


@payouts.command(help_epilogue="")
def reconcile(batch: BatchOptions = _ANY, *, base_url: BaseUrl = None) -> int:
    """Learn from the service's list what became of a batch, and certify it. Sends no payout.

    Settles rows in doubt that the list shows, notes how payouts have ended, and compares the ledger with the
    list row by row. The key comes from PAYMENTS_API_KEY.

    Exit codes: as for `run`; 1 also when the list does not confirm the ledger.
    """
    from .reconcile import reconcile

    return perform_on(batch, reconcile, base_url, lines=True)


@payouts.command
def retry_failed(batch: BatchOptions = _ANY, *, wanted: RetryOptions = _ALL) -> int:
    """Make rows new again whose payouts failed for good; the next `run` pays them. Sends no payout.

    The service's list is read first: only a row of which every payout has ended without arriving is made new.
    With --rejected it is the rejected rows, as they are: for when the service would take them now. A live key
    asks for the total of these rows to be typed back. Exits with 1 if a row that was meant is left.
    """
    from .reconcile import retry_failed

    return perform_on(batch, retry_failed, wanted)


@payouts.command
def pause(batch: BatchOptions = _ANY, *, reason: str = "by an operator") -> int:
    """Let no process begin another row of a batch, until `resume`. Effective within 5 seconds. Needs no key.

    Rows that have left end and are recorded.

    Parameters
    ----------
    reason
        Why; `status` shows it.
    """
    from .decisions import pause

    return perform_on(batch, pause, reason)


@payouts.command
def resume(batch: BatchOptions = _ANY) -> int:
    """Let a paused batch go on. Needs no key."""
    from .decisions import resume

    return perform_on(batch, resume)


@payouts.command
def cancel_rest(batch: BatchOptions = _ANY, *, yes: Yes = False) -> int:
    """Cancel every row of a batch that was never sent. It cannot be undone. Needs no key.

    Asks for the batch's name to be typed first.
    """
    from .decisions import cancel_rest

    return perform_on(batch, cancel_rest, sure=yes)


@payouts.command
def confirm(batch: BatchOptions = _ANY, *, confirm_total: ConfirmTotal = None) -> int:
    """Say yes to the total of a batch that somebody else, or a job, has loaded. Needs no key.

    Shows the total and asks for it to be typed; the next `run` of the batch pays it. The ledger keeps who has
    said yes: the login name.
    """
    from .decisions import confirm

    return perform_on(batch, confirm, confirm_total)


@payouts.command
def forget(batch: BatchOptions = _ANY, *, before: Moment, dry_run: Flag = False, yes: Yes = False) -> int:
    """Delete the rows of a settled batch that were all decided before a day. Needs no key.

    A batch is settled if its last certificate is clean and every payout is final. Its line stays, with its
    sums and certificate, and its name and its input are refused from then on. Of an outbox each settled row
    that is old enough goes. It cannot be undone: export the batch first. Asks for a word to be typed.

    Parameters
    ----------
    before
        The day, UTC: 2026-06-30.
    dry_run
        Only count the rows.
    """
    from .decisions import forget

    return perform_on(batch, forget, before, dry_run=dry_run, sure=yes)
