"""`payments payouts status`, `export`, `check`, `reconcile` and `retry-failed`, as they are typed."""

from __future__ import annotations

from .._output import Json
from .family import command
from .options import Flag, Path, RowNumbers, States, Totals, Url


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
