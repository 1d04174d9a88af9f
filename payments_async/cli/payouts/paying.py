"""`payments payouts run`, as it is typed."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from .._output import Json
from .family import command
from .options import Amount, Concurrency, Delimiter, Duration, Flag, Path, Rows, Share, Totals, Url


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
    from .loading import Order
    from .run import pay  # brings the client and SQLAlchemy along
    from .session import perform

    order = Order(
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
