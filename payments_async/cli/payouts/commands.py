"""The commands of `payments payouts`, with their options as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from importlib.util import find_spec
from typing import Annotated, Final, ParamSpec

from cyclopts import App, Parameter

from ..._version import with_extra
from .._exit_codes import CommandEnded, Exit
from .._output import Json
from .options import (
    Amount,
    Concurrency,
    Delimiter,
    Duration,
    Flag,
    Path,
    RowNumbers,
    Rows,
    Share,
    States,
    Totals,
    Url,
)

P = ParamSpec("P")

payouts: Final = App(
    name="payouts", help="Pay a file of payouts, each row at most once, and see where it stands."
)


def command(function: Callable[P, int]) -> Callable[P, int]:
    """Add a command, whose body may import what needs the ledger's libraries: it is run only where they are.

    Where they are not, it ends with Ended, which names the extra.
    """

    @wraps(function)
    def with_the_extra(*arguments: P.args, **options: P.kwargs) -> int:
        for library in ("sqlalchemy", "aiosqlite"):
            if find_spec(library) is None:
                raise CommandEnded(f"payouts need {library}: {with_extra('bulk')}", Exit.USAGE)
        return function(*arguments, **options)

    payouts.command(with_the_extra)
    return with_the_extra


@command
def status(ledger: Path, /, *, json: Json = False) -> int:
    """Where a batch stands, while it is run or after. Needs no key.

    Parameters
    ----------
    ledger
        The batch's ledger.
    json
        One JSON object instead of text.
    """
    from .inspect import status
    from .session import perform

    return perform(lambda stage: status(ledger, stage), as_json=json)


@command
def export(
    ledger: Path,
    out: Path,
    /,
    *,
    state: States = None,
    accounts: Flag = False,
    overwrite: Flag = False,
    json: Json = False,
) -> int:
    """Write the rows of a ledger, and what became of each, to OUT (.csv, .json, .jsonl, .parquet).

    Needs no key. The file is the owner's alone (mode 0600), and appears once it is whole.

    Parameters
    ----------
    ledger
        The batch's ledger.
    out
        The file to write.
    state
        Only rows in this state; repeat it for more. Of created rows: `completed` (arrived), `failed` and
        `pending` (not final yet); `unknown` is in flight or in doubt.
    accounts
        With the recipients' names and account numbers, which are masked otherwise.
    overwrite
        Replace OUT when it is there; else it is refused.
    json
        One JSON object instead of text.
    """
    from .inspect import export
    from .session import perform

    options = {"accounts": accounts, "overwrite": overwrite}
    return perform(lambda stage: export(ledger, out, state, stage, **options), as_json=json)


@command
def check(ledger: Path, /, *, json: Json = False) -> int:
    """Read all of a ledger, and see whether it is as it was written. Needs no key; exit code 1 if it is not.

    Parameters
    ----------
    ledger
        The batch's ledger.
    json
        One JSON object instead of text.
    """
    from .inspect import check
    from .session import perform

    return perform(lambda stage: check(ledger, stage), as_json=json)


@command
def reconcile(
    ledger: Path,
    /,
    *,
    certificate: Path | None = None,
    base_url: Url = None,
    json: Json = False,
) -> int:
    """Learn from the service's list what became of a batch, and certify it. Sends no payout.

    Settles rows in doubt that the list shows, notes how payouts have ended, checks the ledger and compares
    it with the list row by row. The key comes from PAYMENTS_API_KEY.

    Exit codes: as for `run`; 1 also when the list does not confirm the ledger.

    Parameters
    ----------
    ledger
        The batch's ledger.
    certificate
        Where to write what was found; LEDGER.certificate.json unless given.
    base_url
        The service's address; PAYMENTS_BASE_URL unless given.
    json
        JSON lines instead of text; also without a terminal.
    """
    from .reconcile import reconcile
    from .session import perform

    return perform(lambda stage: reconcile(ledger, certificate, base_url, stage), as_json=json, lines=True)


@command
def retry_failed(
    ledger: Path,
    /,
    *,
    row: RowNumbers = None,
    rejected: Flag = False,
    dry_run: Flag = False,
    confirm_total: Totals = None,
    base_url: Url = None,
    json: Json = False,
) -> int:
    """Make rows new again whose payouts failed for good; the next `run` pays them. Sends no payout.

    Each payout is read from the service first: only one that is over and did not arrive is begun anew. With
    --rejected it is the rows that the service refused, as they are: for when it would take them now. A live
    key asks for the total of these rows to be typed back.

    Parameters
    ----------
    ledger
        The batch's ledger.
    row
        Only this row, by its number; repeat it for more.
    rejected
        The rejected rows instead, unchanged; for a mended file use `run --accept-edits`.
    dry_run
        Only say which.
    confirm_total
        The total to pay anew, such as "XOF 1200.50", for each currency; takes the place of typing it.
    base_url
        The service's address; PAYMENTS_BASE_URL unless given.
    json
        One JSON object instead of text.
    """
    from .reconcile import Retry, retry_failed
    from .session import perform

    wanted = Retry(
        ledger=ledger,
        base_url=base_url,
        rows=row,
        rejected=rejected,
        dry_run=dry_run,
        confirm_total=confirm_total or (),
    )
    return perform(lambda stage: retry_failed(wanted, stage), as_json=json)


@command
def run(
    file: Annotated[str, Parameter(metavar="FILE")],
    /,
    *,
    ledger: Path | None = None,
    batch_id: Annotated[str | None, Parameter(metavar="ID")] = None,
    base_url: Url = None,
    dry_run: Flag = False,
    skip_invalid: Flag = False,
    rejects: Path | None = None,
    strict_amounts: Flag = False,
    delimiter: Delimiter = None,
    accept_edits: Flag = False,
    pay_again: Flag = False,
    confirm_total: Totals = None,
    max_amount: Amount = None,
    max_rows: Rows = None,
    max_failure_rate: Share = None,
    concurrency: Concurrency = 256,
    patience: Duration = 3600.0,
    drain: Duration = 30.0,
    wait_final: Duration | None = None,
    json: Json = False,
) -> int:
    """Pay the rows of FILE (.csv, .jsonl, .ndjson, .parquet). The same command starts and resumes.

    Each row is paid at most once, whatever dies and whenever: stop it, kill it, run it again. The API key
    comes from PAYMENTS_API_KEY. A live key asks for the total to be typed back before the first payout.

    Exit codes: 0 every row created and certified, 1 complete with rows refused, payouts that failed or a
    list that does not confirm the ledger, 2 nothing can be sent until what the message says is mended, 3 rows
    in doubt, 75 stopped, and the same command goes on.

    Parameters
    ----------
    file
        The payouts. Columns: `amount`, `currency`, `method`, `instrument.*`, and as you like `row_key`,
        `reference`, `description`, `webhook_url`, `customer.*`, `metadata.*`, `gateway_options`.
    ledger
        What remembers every row; FILE.ledger unless given. On a local disk.
    batch_id
        Names the batch; else it is the hash of the input. A live key needs a name, unless every row has a
        reference of its own.
    base_url
        The service's address; PAYMENTS_BASE_URL unless given.
    dry_run
        Read and check every row, and send nothing.
    skip_invalid
        Pay the rows without faults; else one fault refuses the whole file.
    rejects
        Where to write the rows with faults, each with the reference that it has in this batch.
    strict_amounts
        Refuse amounts of more than 15 digits, which are otherwise warned about.
    delimiter
        What stands between the cells of a CSV file: one sign, such as ";", or `tab`; a comma unless given.
    accept_edits
        The file was edited since: take the corrected rows that were not paid yet.
    pay_again
        The same rows were paid under another batch id: pay them once more.
    confirm_total
        The total to pay, such as "XOF 1200.50", for each currency; takes the place of typing it.
    max_amount
        Take no row that would bring a currency over this.
    max_rows
        Take no more rows than this, earlier runs included.
    max_failure_rate
        Take no more rows once more than this share failed: 0.05, or 5%.
    concurrency
        Rows under way at a time, and connections. It bounds the speed: payouts a second x seconds until the
        service answers. 256 pay 1,000 a second at up to a quarter of a second each.
    patience
        How long rows in doubt are posted again and looked for, once the others are done: 90, 90s, 15m, 2h.
    drain
        How long rows under way are given after SIGTERM or Ctrl-C.
    wait_final
        How long to follow the created payouts until they are final.
    json
        JSON lines instead of text; also without a terminal.
    """
    from .run import (
        RunOptions,
        pay,  # brings the client and SQLAlchemy along
    )
    from .session import perform

    order = RunOptions(
        file=file,
        ledger=ledger or f"{file}.ledger",
        base_url=base_url,
        confirm_total=confirm_total or (),
        strict_amounts=strict_amounts,
        delimiter=delimiter,
        dry_run=dry_run,
        accept_edits=accept_edits,
        pay_again=pay_again,
        reading={"batch_id": batch_id, "skip_invalid": skip_invalid, "rejects": rejects},
        pace={
            "max_amount": max_amount,
            "max_rows": max_rows,
            "max_failure_rate": max_failure_rate,
            "concurrency": concurrency,
            "patience": patience,
            "drain": drain,
            "wait_final": wait_final,
        },
    )
    return perform(lambda stage: pay(order, stage), as_json=json, lines=True)
