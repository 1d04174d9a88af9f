"""The options of the payouts commands, how they are read, and the ledger that a command is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeVar

import attrs
from cyclopts import Parameter, Token
from cyclopts.validators import Number

from ...bulk import Outcome
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk._texts.quantities import amount_of
from ...bulk.sources import ColumnMapping
from .._exit_codes import CommandEnded, Exit
from .._output import FileName, Flag, Insecure, JsonLinesFlag

R = TypeVar("R")
VARIABLE: Final = "PAYMENTS_LEDGER"
"""The environment variable of the ledger's address."""
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)")
_LONGEST: Final = 30 * 86400
_STATES: Final = ("created", *(outcome.value for outcome in Outcome))


def seconds_of(text: str) -> float:
    """Seconds in `90`, `90s`, `15m`, `2h` or `1d`, at most 30 days. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    seconds = float(found[1]) * _SECONDS[found[2]] if found else _LONGEST + 1
    if seconds > _LONGEST:
        raise ValueError(f"{text!r} is not a duration of at most 30 days: give 90, 90s, 15m, 2h or 1d")
    return seconds


def delimiter_of(text: str) -> str:
    """The delimiter of a CSV file: one sign, or `tab`. Raises ValueError."""
    sign = "\t" if text in ("tab", "\\t") else text
    if len(sign) != 1 or sign.isalnum() or sign in "\"'\r\n ":
        raise ValueError(f"{text!r} is not a delimiter: give one character, such as ';', or tab")
    return sign


def moment_of(text: str) -> datetime:
    """`2026-06-30` or `2026-06-30T12:00:00+01:00`; UTC unless it says otherwise. Raises ValueError."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a date: give 2026-06-30 or 2026-06-30T12:00:00Z") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def state_of(text: str) -> str:
    """An outcome, or `created`; `not-final` is `not_final`. Raises ValueError."""
    state = text.replace("-", "_")
    if state not in _STATES:
        raise ValueError(f"{text!r} is not a state: there are {', '.join(_STATES)}")
    return state


def _reading(read: Callable[[str], R]) -> Callable[[Any, Sequence[Token]], R]:
    """The converter of an option whose text this function reads."""
    return lambda _, tokens: read(tokens[0].value)


def _each(read: Callable[[str], R]) -> Callable[[Any, Sequence[Token]], list[R]]:
    """The same, of an option that is given several times."""
    return lambda _, tokens: [read(token.value) for token in tokens]


def require_address(
    given: str | None, environment: Mapping[str, str], otherwise: str | None = None
) -> LedgerAddress:
    """The ledger that was given, else that of PAYMENTS_LEDGER, else `otherwise`. Raises CommandEnded."""
    if text := given or environment.get(VARIABLE):
        return LedgerAddress(text, is_default=not given)
    if otherwise is None:
        missing = f"no ledger: give its path or address (postgresql://…), or set {VARIABLE}"
        raise CommandEnded(missing, Exit.USAGE)
    return LedgerAddress(otherwise)


_SERVICE: Final = "The service's address; PAYMENTS_BASE_URL unless given."
BaseUrl = Annotated[str | None, Parameter(metavar="URL", help=_SERVICE)]
Path = Annotated[FileName, Parameter(metavar="PATH")]
Ledger = Annotated[FileName | None, Parameter(metavar="LEDGER")]
_LEDGER: Final = "The ledger, a file or a database (postgresql://…); PAYMENTS_LEDGER unless given."
LedgerArgument = Annotated[Ledger, Parameter(help=_LEDGER)]
_BATCH: Final = "The batch's name, where the ledger has several."
Duration = Annotated[float, Parameter(converter=_reading(seconds_of), metavar="DURATION", show_default=False)]
Moment = Annotated[datetime | None, Parameter(converter=_reading(moment_of), metavar="DATE")]
Amount = Annotated[Decimal | None, Parameter(converter=_reading(amount_of), metavar="AMOUNT")]
Delimiter = Annotated[str | None, Parameter(converter=_reading(delimiter_of), metavar="SIGN")]
Share = Annotated[float | None, Parameter(validator=Number(gte=0, lte=1), metavar="SHARE")]
Rows = Annotated[int | None, Parameter(validator=Number(gte=1), metavar="N")]
Totals = Annotated[list[str] | None, Parameter(metavar='"CUR AMOUNT"', negative="")]
RowNumbers = Annotated[
    list[Annotated[int, Parameter(validator=Number(gte=1))]] | None, Parameter(name="--row", negative="")
]
if TYPE_CHECKING:
    State = str
else:
    State = Literal[_STATES]
States = Annotated[
    list[State] | None, Parameter(name="--state", negative="", metavar="STATE", converter=_each(state_of))
]
_PAY: Final = 'The total to pay, such as "XOF 1200.50", for each currency, instead of typing it.'
ConfirmTotal = Annotated[Totals, Parameter(help=_PAY)]
_YES: Final = "Do not ask."
Yes = Annotated[Flag, Parameter(help=_YES)]

_NOWHERE: Final = LedgerAddress("")


@Parameter(name="*")
@attrs.frozen
class BatchOptions:
    """The batch that a command is about, and whether it speaks to a program."""

    ledger: LedgerArgument = None
    batch_id: Annotated[str | None, Parameter(metavar="NAME", help=_BATCH)] = attrs.field(
        default=None, kw_only=True
    )
    insecure_database: Insecure = attrs.field(default=False, kw_only=True)
    json: JsonLinesFlag = attrs.field(default=False, kw_only=True)


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class RunOptions:
    """The options of `payments payouts run`. The texts are its help."""

    file: Annotated[str | None, Parameter(parse=False)] = None
    """None to join a batch that the ledger has."""
    address: Annotated[LedgerAddress, Parameter(parse=False)] = _NOWHERE
    """The ledger, with its password."""
    ledger: Ledger = None
    """What remembers every row: a file, or a database (postgresql://…). PAYMENTS_LEDGER unless given, else
    FILE.ledger."""
    batch_id: Annotated[str | None, Parameter(metavar="NAME")] = None
    """The batch's name; the hash of its input unless given. A live key needs one, unless every row has a
    reference."""
    dry_run: Flag = False
    """Read and check every row, and send nothing."""
    skip_invalid: Flag = False
    """Pay the rows without faults; else one fault refuses the whole file."""
    confirm_total: ConfirmTotal = None
    wait_final: Duration | None = None
    """How long to follow the created payouts until they are final: 2h."""
    page: Flag = False
    """Show the batch in a browser. On a terminal the page stays until Ctrl-C."""
    sheet: Annotated[str | None, Parameter(metavar="NAME")] = None
    """The sheet of a workbook, if more than one has values."""
    map: Annotated[list[str] | None, Parameter(negative="", metavar="COLUMN=OURS")] = None
    """A column of FILE: "Phone=instrument.phone_number". "Note=" leaves one out. Repeatable."""
    map_file: Annotated[FileName | None, Parameter(metavar="FILE")] = None
    """A TOML file with [columns], and [constants] that all rows share."""
    mapping: Annotated[ColumnMapping | None, Parameter(parse=False)] = None
    """Both."""
    rejects: Path | None = None
    """Where to write the rows with faults, each with its reference in this batch."""
    no_doubts: Flag = False
    """Refuse what is allowed and probably a slip, such as an amount of more than 15 digits."""
    delimiter: Delimiter = None
    """What separates the cells of a CSV file: ";", `tab`; a comma unless given. .tsv and .txt need it."""
    header_row: Rows = None
    """The line or row that names the columns."""
    accept_edits: Flag = False
    """The file was edited since: take the corrected rows that were not paid yet."""
    pay_again: Flag = False
    """The same rows were paid under another batch id: pay them once more."""
    max_amount: Amount = None
    """Pay no row from the one on that would bring a currency over this."""
    max_rows: Rows = None
    """Pay the first so many rows only."""
    max_failure_rate: Share = None
    """Pause once a larger share is rejected: 0.05."""
    follow: Flag = False
    """Of an outbox: wait for rows still to come."""
    for_seconds: Annotated[Duration | None, Parameter(name="--for")] = None
    """End after so long, though rows are left."""
    concurrency: Annotated[int, Parameter(validator=Number(gte=1, lte=1024), metavar="N")] = 192
    """Rows sent at a time, and connections."""
    patience: Duration = 3600.0
    """How long rows in doubt are posted again and looked for, once the others are done; 1h unless given."""
    drain: Duration = 30.0
    """How long rows that have left may finish after SIGTERM or Ctrl-C; 30s unless given."""
    base_url: BaseUrl = None
    insecure_database: Insecure = False
    json: JsonLinesFlag = False

    def only(self, *names: str) -> dict[str, Any]:
        """These options, as arguments."""
        return {name: getattr(self, name) for name in names}


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class RetryOptions:
    """The options of `payments payouts retry-failed`. The texts are its help."""

    row: RowNumbers = None
    """Only this row, by its number; repeat it for more."""
    rejected: Flag = False
    """The rejected rows instead, unchanged; for a corrected file use `run --accept-edits`."""
    dry_run: Flag = False
    """Only name the rows."""
    confirm_total: ConfirmTotal = None
    base_url: BaseUrl = None
