"""`payments guard`: the state of a guard's sums, and what the guard would refuse of a file (docs/guard.md).

state   the guard's file, its rules in words, where its sums are kept; also for `payments doctor`
show    `begin` and `show`
rows    `check`: the rows of a file
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import App, Parameter
from cyclopts.validators import Number

from .._output import Flag, JsonFlag, JsonLinesFlag

_FILE: Final = "The guard's file; PAYMENTS_GUARD unless given."
GuardFile = Annotated[str | None, Parameter(name="--guard", metavar="PATH", help=_FILE)]
_INSECURE: Final = "Use a limit store on another machine without TLS that proves its name."
InsecureStore = Annotated[
    bool, Parameter(name="--insecure-database", negative="", show_default=False, help=_INSECURE)
]
Refusals = Annotated[int, Parameter(validator=Number(gte=0, lte=100), metavar="N")]

guard: Final = App(name="guard", help="A guard on money: its rules, its sums, and what it would refuse.")


@guard.command
def begin(
    *,
    guard_file: GuardFile = None,
    again: Flag = False,
    insecure_database: InsecureStore = False,
    json: JsonFlag = False,
) -> int:
    """Make the state of a guard's sums, and trust it from now on. Sends nothing.

    Until then a new state refuses payouts, because it does not know what was paid before. What was paid
    before is not counted. The key and the address come from PAYMENTS_API_KEY and PAYMENTS_BASE_URL.

    Parameters
    ----------
    again
        Trust a state anew that is trusted already. What it counts stays.
    """
    from .show import begin

    return begin(guard_file, again=again, insecure_database=insecure_database, as_json=json)


@guard.command
def show(
    *,
    guard_file: GuardFile = None,
    refusals: Refusals = 5,
    insecure_database: InsecureStore = False,
    json: JsonFlag = False,
) -> int:
    """The rules of a guard, what is left of each sum, and the last refusals. Sends nothing.

    The state is of the key and address in PAYMENTS_API_KEY and PAYMENTS_BASE_URL.

    Parameters
    ----------
    refusals
        How many refusals to show, the newest first.
    """
    from .show import show

    return show(guard_file, refusals, insecure_database=insecure_database, as_json=json)


@guard.command
def check(
    file: Annotated[str, Parameter(metavar="FILE")],
    /,
    *,
    guard_file: GuardFile = None,
    delimiter: Annotated[str, Parameter(metavar="SIGN")] | None = None,
    sheet: Annotated[str, Parameter(metavar="NAME")] | None = None,
    with_hidden: Flag = False,
    header_row: Annotated[int, Parameter(metavar="N")] | None = None,
    map: Annotated[list[str] | None, Parameter(name="--map", negative="", metavar="COLUMN=OURS")] = None,
    map_file: Annotated[Path | None, Parameter(metavar="FILE")] = None,
    json: JsonLinesFlag = False,
) -> int:
    """Name each row of FILE that the guard would refuse (.csv, .tsv, .txt, .jsonl, .ndjson, .parquet, .xlsx).

    Sends nothing, needs no key, and makes no ledger. Exit codes: 0 nothing would be refused, 1 a row would
    be, 2 the guard or the file cannot be used.

    Parameters
    ----------
    file
        The payouts, as for `payments payouts run`.
    delimiter
        What separates the cells of a CSV file: one character; a comma unless given.
    sheet
        The sheet of a workbook, if more than one has values.
    with_hidden
        Judge the rows of a workbook that are hidden, too; else each is a fault.
    header_row
        The line or row that names the columns, as for `payments payouts run`.
    map
        What a column of FILE is, as for `payments payouts run`.
    map_file
        A TOML file with [columns] and [constants], as for `payments payouts run`.
    """
    from ...bulk.sources import ColumnMapping
    from .rows import check

    mapping = ColumnMapping.from_options(map, map_file)
    source = {"delimiter": delimiter, "sheet": sheet, "with_hidden": with_hidden, "mapping": mapping}
    return check(file, guard_file, {**source, "header_row": header_row}, as_json=json)
