"""The commands of `payments payouts` for a ledger in a database, with their help."""

from __future__ import annotations

from typing import Annotated, Final

from cyclopts import App, Parameter

from ...bulk._texts.ledger_address import LedgerAddress, without_password
from .._output import Flag, JsonFlag, JsonLinesFlag
from .._text import print_message
from .commands import address_of, batch_address, payouts, perform_on
from .options import (
    BatchOptions,
    DatabaseArgument,
    DatabaseOptions,
    ForgetOptions,
    Located,
    PlanOptions,
    RecoverOptions,
    RoleName,
    WorkerArguments,
    require_database,
    visible_password,
)

_ONE_BATCH: Final = "a ledger in a file has one batch: archive it, and delete the file"
_FILE: Final = "a ledger in a file has one process, which `run` starts"
ledger: Final = App(name="ledger", help="Tables, rights and settings of a database that has ledgers.")
payouts.command(ledger)


def _database_of(given: str | None, options: Located | None) -> LedgerAddress:
    """The database that a command is about. Raises CommandEnded."""
    return require_database(address_of(given, options), _FILE)


def _batch_of(given: str | None, options: Located | None) -> LedgerAddress:
    """One batch in a database. Raises CommandEnded."""
    return require_database(batch_address(given, options), _FILE)


@payouts.command
def worker(*, options: WorkerArguments | None = None, json: JsonLinesFlag = False) -> int:
    """Work on the batches of a database, beside any number of other workers on any number of machines.

    A worker takes chunks of rows, pays them, and takes the next; it works on every batch that `run` has
    planned with its key. SIGTERM or Ctrl-C lets the rows under way end; what it leaves goes to the others.

    Exit codes: 0 stopped by a signal or by `drain`, or nothing left with --until-idle; 2 nothing can be sent
    until you fix what the message names; 3 outcomes could not be recorded; 75 database or service lost: start
    it again.
    """
    from .worker_processes import work

    wanted = options or WorkerArguments()
    address = require_database(address_of(wanted.ledger, wanted), _FILE)
    if wanted.limit_store and without_password(wanted.limit_store) != wanted.limit_store:
        warning = visible_password("the limit store's", "PAYMENTS_LIMIT_STORE")
        print_message(warning)
    return perform_on(address, json, work, wanted, lines=True)


@payouts.command
def batches(
    database: DatabaseArgument = None,
    /,
    *,
    options: DatabaseOptions | None = None,
    json: JsonLinesFlag = False,
) -> int:
    """The batches of a database: rows, sums, speed. Needs no key; exit code 1 if one cannot be read."""
    from .inspect import batches

    return perform_on(_database_of(database, options), json, batches)


@payouts.command
def workers(
    database: DatabaseArgument = None,
    /,
    *,
    options: DatabaseOptions | None = None,
    json: JsonLinesFlag = False,
) -> int:
    """The workers of a database: where each runs, what it holds, how fast it pays. Needs no key."""
    from .inspect import workers

    return perform_on(_database_of(database, options), json, workers)


@payouts.command
def pause(
    database: DatabaseArgument = None,
    /,
    *,
    reason: str = "by an operator",
    options: BatchOptions | None = None,
    json: JsonFlag = False,
) -> int:
    """Let no worker begin another row of a batch, until `resume`. Effective within 5 seconds. Needs no key.

    Rows under way end and are recorded.

    Parameters
    ----------
    reason
        Why; `status` shows it.
    """
    from .machines import pause

    return perform_on(_batch_of(database, options), json, pause, reason)


@payouts.command
def resume(
    database: DatabaseArgument = None,
    /,
    *,
    guard: Flag = False,
    yes: Flag = False,
    options: BatchOptions | None = None,
    json: JsonFlag = False,
) -> int:
    """Let workers go on with a paused batch. Of another batch it prints what resumes it. Needs no key.

    Parameters
    ----------
    guard
        Record the guard of PAYMENTS_GUARD, or none without it: only workers with the same go on. Of a live
        batch it asks for the batch's name to be typed first.
    yes
        Do not ask.
    """
    from .machines import resume

    return perform_on(batch_address(database, options), json, resume, guard=guard, sure=yes)


@payouts.command
def confirm(
    database: DatabaseArgument = None, /, *, options: PlanOptions | None = None, json: JsonFlag = False
) -> int:
    """Confirm the total of a batch that a step has imported: workers begin to pay it. Needs no key.

    A scheduler or workflow engine imports a live batch without its total, and waits for this. Asks for the
    total to be typed. Give the stop rules here: they are those of the batch from then on.
    """
    from .machines import confirm

    wanted = options or PlanOptions()
    return perform_on(_batch_of(database, wanted), json, confirm, wanted)


@payouts.command
def drain(
    database: DatabaseArgument = None,
    /,
    *,
    worker: Annotated[str, Parameter(metavar="ID")],
    options: DatabaseOptions | None = None,
    json: JsonFlag = False,
) -> int:
    """Stop a worker in order: it takes no more rows, ends those under way and exits. Needs no key.

    Parameters
    ----------
    worker
        Its id, or the first characters of it, as `workers` shows them.
    """
    from .machines import drain

    return perform_on(_database_of(database, options), json, drain, worker)


@payouts.command
def recover(
    database: DatabaseArgument = None,
    /,
    *,
    options: RecoverOptions | None = None,
    json: JsonLinesFlag = False,
) -> int:
    """Recover a batch whose database has lost commits, by a fail-over or a restored backup. Sends no payout.

    Such a batch is suspect, and no row of it is sent. This reads the service's list, records what it shows
    and lists the commands that the database still knows. Repeat those that are missing, then confirm with
    --commands-complete. The key comes from PAYMENTS_API_KEY.

    Exit codes: 0 recovered, or nothing was lost; 1 the list shows what does not follow from the ledger; 2 as
    for `run`; 75 not over yet: the message says when to run it again, and how.
    """
    from .reconcile import recover

    wanted = options or RecoverOptions()
    return perform_on(_batch_of(database, wanted), json, recover, wanted, lines=True)


@payouts.command
def cancel_rest(
    database: DatabaseArgument = None,
    /,
    *,
    options: BatchOptions | None = None,
    yes: Flag = False,
    json: JsonFlag = False,
) -> int:
    """Cancel every row of a batch that was never sent. It cannot be undone. Needs no key.

    Asks for the batch's name to be typed first.

    Parameters
    ----------
    yes
        Do not ask.
    """
    from .machines import cancel_rest

    return perform_on(_batch_of(database, options), json, cancel_rest, sure=yes)


@payouts.command
def forget(
    database: DatabaseArgument = None,
    /,
    *,
    options: ForgetOptions,
    dry_run: Flag = False,
    yes: Flag = False,
    json: JsonLinesFlag = False,
) -> int:
    """Drop the rows, states, attempts and entries of settled batches, and free their disk. Needs no key.

    A batch is settled if its last certificate is clean, every payout is final, and nothing has changed since.
    Kept are sums, root, certificate and keyed hashes of its references. It cannot be undone: archive a batch
    first. Asks for a word to be typed.

    Parameters
    ----------
    dry_run
        Only show what would be forgotten, and what is kept and why.
    yes
        Do not ask.
    """
    from .machines import forget

    address = require_database(address_of(database, options), _ONE_BATCH)
    return perform_on(address, json, forget, options, lines=True, dry_run=dry_run, sure=yes)


@ledger.command
def init(
    database: DatabaseArgument = None, /, *, options: DatabaseOptions | None = None, json: JsonFlag = False
) -> int:
    """Make the tables in a database, once. Tables that are there stay as they are."""
    from .ledger_tables import init

    return perform_on(_database_of(database, options), json, init)


@ledger.command
def upgrade(
    database: DatabaseArgument = None, /, *, options: DatabaseOptions | None = None, json: JsonFlag = False
) -> int:
    """Bring the tables of an older version to this one's form, while no worker runs."""
    from .ledger_tables import upgrade

    return perform_on(_database_of(database, options), json, upgrade)


@ledger.command(name="check")
def check_database(
    database: DatabaseArgument = None,
    /,
    *,
    role: RoleName = "planner",
    options: DatabaseOptions | None = None,
    json: JsonLinesFlag = False,
) -> int:
    """Check a database: version, rights, TLS, clock, standbys, time-outs, pooler. Changes nothing.

    Exit code 1 if it cannot be used as it is. Missing rights are printed as SQL.

    Parameters
    ----------
    role
        The rights to look for: those to see figures (`reader`), to pay (`worker`), or to import as well.
    """
    from .ledger_tables import check

    return perform_on(_database_of(database, options), json, check, role)
