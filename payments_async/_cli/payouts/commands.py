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
from .._output import Flag, JsonFlag, JsonLinesFlag
from .._text import print_message
from .options import (
    VARIABLE,
    BaseUrl,
    BatchOptions,
    LedgerArgument,
    Located,
    Path,
    RetryOptions,
    RunOptions,
    States,
    require_address,
    require_batch,
    require_database,
    visible_password,
)

ONE: Final = Group("One payout", sort_key=1)
"""The help's group of commands about one payout (`_cli/calls/`)."""
payouts: Final = App(
    name="payouts",
    help="Send one payout, or pay a file of them, each row at most once, and see where it stands.",
    group_commands=Group("A batch", sort_key=2),
)


def address_of(
    given: str | None, options: Located | None = None, otherwise: str | None = None
) -> LedgerAddress:
    """The ledger that a command is about. Warns of a password among the arguments. Raises CommandEnded."""
    address = require_address(given, os.environ, otherwise)
    if address.has_visible_password:
        warning = visible_password("the database's", VARIABLE)
        print_message(warning)
    name = getattr(options, "batch_id", None)
    return attrs.evolve(address, batch_id=name, is_insecure=bool(options and options.insecure_database))


def batch_address(given: str | None, options: Located | None) -> LedgerAddress:
    """The same, with the batch's name where the ledger is a database. Raises CommandEnded."""
    return require_batch(address_of(given, options))


def perform_on(
    address: LedgerAddress,
    as_json: bool,
    work: Callable[..., Coroutine[Any, Any, Exit]],
    *arguments: object,
    lines: bool = False,
    **options: object,
) -> int:
    """Do the work of a command about a ledger: `work(address, *arguments, context, **options)`.

    For `as_json` and `lines` see `perform`, and for what is raised.
    """
    from .command_context import perform

    return perform(
        lambda context: work(address, *arguments, context, **options),
        about=address.shown,
        as_json=as_json,
        lines=lines,
    )


@payouts.command
def status(
    ledger: LedgerArgument = None,
    /,
    *,
    watch: Flag = False,
    options: BatchOptions | None = None,
    json: JsonFlag = False,
) -> int:
    """Where a batch stands, during a run or after. Needs no key.

    Parameters
    ----------
    watch
        Show it every second until the run ends, or Ctrl-C.
    """
    from .inspect import status, watch_status

    show = watch_status if watch else status
    return perform_on(batch_address(ledger, options), json, show, lines=watch)


@payouts.command
def watch(ledger: LedgerArgument = None, /, *, options: BatchOptions | None = None) -> int:
    """Open the page of a batch in a browser, during its run or after. Needs no key.

    A run serves its page itself. Of a ledger that no run holds, and of a database, this command serves the
    page until Ctrl-C.
    """
    from .page import watch

    return perform_on(batch_address(ledger, options), False, watch)


@payouts.command
def show(
    ledger: LedgerArgument = None,
    row: Annotated[str | None, Parameter(metavar="ROW")] = None,
    /,
    *,
    options: BatchOptions | None = None,
    json: JsonFlag = False,
) -> int:
    """One row of a batch: its state, its attempts with their answers and times, its reference and payout.

    Needs no key. During a run it asks that run. Where PAYMENTS_LEDGER names the ledger, ROW is the only
    argument.

    Parameters
    ----------
    row
        The row's key, its reference, or its number in the file.
    """
    from .row import show_row

    if ledger is None or (row is None and not os.environ.get(VARIABLE)):
        raise _row_missing(address_of(ledger, options, "LEDGER"))
    given, name = (ledger, row) if row else (None, ledger)
    return perform_on(address_of(given, options), json, show_row, name)


def _row_missing(ledger: LedgerAddress) -> CommandEnded:
    """The message of `show` without a row: what it is, and how to find those that need a look."""
    watch, export = ledger.command("watch"), ledger.command("export", "to-check.csv", "--state", "rejected")
    problem = (
        f"show: ROW is missing, a row's key, reference or number; `{watch}` shows the rows that need a look"
    )
    return CommandEnded(f"{problem}, and `{export}` writes the rejected ones to a file", Exit.USAGE)


@payouts.command
def export(
    ledger: LedgerArgument = None,
    out: Path | None = None,
    /,
    *,
    options: BatchOptions | None = None,
    state: States = None,
    accounts: Flag = False,
    overwrite: Flag = False,
    json: JsonFlag = False,
) -> int:
    """Write the rows of a ledger, and what became of each, to OUT (.csv, .json, .jsonl, .parquet, .xlsx).

    Needs no key. Only the owner can read the file (mode 0600). It appears once it is whole. Where
    PAYMENTS_LEDGER names the ledger, OUT is the only argument. A workbook (.xlsx) also has the money by
    outcome, of all rows, and the certificate that `run` or `reconcile` wrote.

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

    if ledger is None:
        raise CommandEnded(
            "export: OUT is missing, the file to write (.csv, .json, .jsonl, .parquet, .xlsx)", Exit.USAGE
        )
    given, path = (ledger, out) if out else (None, ledger)
    address = batch_address(given, options)
    certificate = _certificate_beside(address)
    return perform_on(address, json, export, path, state, certificate, accounts=accounts, overwrite=overwrite)


def _certificate_beside(address: LedgerAddress) -> str | None:
    """The file of the certificate beside a ledger in a file; None without one."""
    path = None if address.is_database else address.beside("certificate.json")
    return path if path and os.path.exists(path) else None


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
def archive(
    ledger: LedgerArgument = None,
    /,
    *,
    to: Path,
    options: BatchOptions | None = None,
    certificate: Path | None = None,
    accounts: Flag = False,
    overwrite: Flag = False,
    json: JsonFlag = False,
) -> int:
    """Write all that the ledger knows of a closed batch to a Parquet file, which `check` checks alone.

    Needs no key. Only the owner can read the file (mode 0600). It was checked before it appears. It has a
    row for each payout, with its state, the service's words, its attempts and the ledger's hash chains.

    Parameters
    ----------
    to
        The file to write, .parquet.
    certificate
        The certificate's file to put into it; that beside a ledger in a file, or the one that the database
        keeps, unless given.
    accounts
        With the bodies that were sent, and so the recipients' names and account numbers. Keyed hashes stand
        for them otherwise.
    overwrite
        Replace the file when it is there; else it is refused.
    """
    from .inspect import archive

    address = batch_address(ledger, options)
    certificate = certificate or _certificate_beside(address)
    return perform_on(address, json, archive, to, certificate, accounts=accounts, overwrite=overwrite)


@payouts.command
def check(
    ledger: LedgerArgument = None,
    /,
    *,
    chunks: str | None = None,
    options: BatchOptions | None = None,
    json: JsonFlag = False,
) -> int:
    """Check that a ledger, or an archive, is as it was written. Needs no key; exit code 1 if not.

    Parameters
    ----------
    chunks
        Write a line of JSON for each chunk of a database's batch to this file; its SHA-256 is the head.
    """
    from .inspect import check

    address = batch_address(ledger, options)
    if chunks is not None:
        address = require_database(address, "a ledger in a file is not divided into chunks")
    return perform_on(address, json, check, chunks)


@payouts.command
def reconcile(
    ledger: LedgerArgument = None,
    /,
    *,
    options: BatchOptions | None = None,
    certificate: Path | None = None,
    base_url: BaseUrl = None,
    json: JsonLinesFlag = False,
) -> int:
    """Learn from the service's list what became of a batch, and certify it. Sends no payout.

    Settles rows in doubt that the list shows, notes how payouts have ended, checks the ledger and compares
    it with the list row by row. The key comes from PAYMENTS_API_KEY.

    Exit codes: as for `run`; 1 also when the list does not confirm the ledger.

    Parameters
    ----------
    certificate
        Where to write what was found; LEDGER.certificate.json unless given, with the batch's name
        if the ledger is a database.
    """
    from .reconcile import reconcile

    return perform_on(batch_address(ledger, options), json, reconcile, certificate, base_url, lines=True)


@payouts.command
def retry_failed(
    ledger: LedgerArgument = None, /, *, options: RetryOptions | None = None, json: JsonFlag = False
) -> int:
    """Make rows new again whose payouts failed for good; the next `run` pays them. Sends no payout.

    Each payout is read from the service first: only one that has ended without arriving is made new. With
    --rejected it is the rejected rows, as they are: for when it would take them now. A live
    key asks for the total of these rows to be typed back.
    """
    from .reconcile import retry_failed

    address, wanted = batch_address(ledger, options), options or RetryOptions()
    return perform_on(address, json, retry_failed, wanted)


@payouts.command
def run(
    file: Annotated[str, Parameter(metavar="FILE")],
    /,
    *,
    options: RunOptions | None = None,
    json: JsonLinesFlag = False,
) -> int:
    """Pay the rows of FILE (.csv, .jsonl, .ndjson, .parquet, .xlsx). The same command starts and resumes.

    Each row is paid at most once, whatever dies and whenever: stop it, kill it, run it again. The API key
    comes from PAYMENTS_API_KEY. A live key asks for the total to be typed back before the first payout.

    Exit codes: 0 every row created and certified, 1 complete with rows rejected, payouts that failed or a
    list that does not confirm the ledger, 2 nothing can be sent until you fix what the message names, 3 rows
    in doubt, 75 stopped and the same command resumes, 130 Ctrl-C instead of the total.

    Parameters
    ----------
    file
        The payouts. Columns: `amount`, `currency`, `method`, `instrument.*`, and as you like `row_key`,
        `reference`, `description`, `webhook_url`, `customer.*`, `metadata.*`, `gateway_options`.
    """
    from .run import pay  # imports the client

    wanted = options or RunOptions()
    address = address_of(wanted.ledger, wanted, f"{file}.ledger")
    mapping = ColumnMapping.from_options(wanted.map, wanted.map_file)
    wanted = attrs.evolve(wanted, file=file, address=address, mapping=mapping)
    from .command_context import perform

    return perform(lambda context: pay(wanted, context), about=file, as_json=json, lines=True)
