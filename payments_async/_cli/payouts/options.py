"""The options of the payouts commands, how they are read, and the ledger that a command is about. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Any, Final, Literal, Protocol, TypeVar

import attrs
from cyclopts import Parameter, Token
from cyclopts.validators import Number

from ...bulk import is_database
from ...bulk._texts.ledger_address import LedgerAddress, without_password
from ...bulk._texts.quantities import amount_of
from ...bulk.errors import BulkError
from ...bulk.sources import ColumnMapping
from .._exit_codes import CommandEnded, Exit
from .._help import MORE, USED
from .._output import Flag

R = TypeVar("R")
VARIABLE: Final = "PAYMENTS_LEDGER"
"""The environment variable of the ledger's address."""
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([smhd]?)")
_SHARE: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)(%?)")
_LONGEST: Final = 30 * 86400

StateName = Literal[
    "not-started",
    "cancelled",
    "rejected",
    "under-way",
    "in-doubt",
    "conflict",
    "created",
    "not-final",
    "arrived",
    "failed",
    "returned",
]
RoleName = Literal["reader", "worker", "planner"]


def age_of(text: str) -> float:
    """Seconds in `90`, `90s`, `15m`, `2h` or `90d`. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not an age: give 0, 12h or 90d")
    return float(found[1]) * _SECONDS[found[2]]


def seconds_of(text: str) -> float:
    """As `age_of`, of at most 30 days. Raises ValueError."""
    seconds = age_of(text) if _DURATION.fullmatch(text) else None
    if seconds is None or seconds > _LONGEST:
        raise ValueError(f"{text!r} is not a duration of at most 30 days: give 90, 90s, 15m, 2h or 1d")
    return seconds


def shortest(seconds: float | None) -> str | None:
    """The shortest text that `seconds_of` reads as this: `1h` for 3600."""
    if not seconds:
        return None
    size, unit = next((s, u) for u, s in reversed(_SECONDS.items()) if seconds % s == 0 and seconds >= s)
    return f"{seconds / size:g}{unit or 's'}"


def share_of(text: str) -> float:
    """A share from 0 to 1, or `0%` to `100%`. Raises ValueError."""
    found = _SHARE.fullmatch(text)
    share = float(found[1]) / (100 if found[2] else 1) if found else 2.0
    if share > 1:
        raise ValueError(f"{text!r} is not a share: give 0 to 1, such as 0.05, or 5%")
    return share


def delimiter_of(text: str) -> str:
    """The delimiter of a CSV file: one sign, or `tab`. Raises ValueError."""
    sign = "\t" if text in ("tab", "\\t") else text
    if len(sign) != 1 or sign.isalnum() or sign in "\"'\r\n ":
        raise ValueError(f"{text!r} is not a delimiter: give one character, such as ';', or tab")
    return sign


def _reading(read: Callable[[str], R]) -> Callable[[Any, Sequence[Token]], R]:
    """The converter of an option whose text this function reads."""
    return lambda _, tokens: read(tokens[0].value)


def visible_password(whose: str, variable: str) -> str:
    """The warning about a password among a command's arguments."""
    return (
        f"{whose} password is on the command line, where everybody on this machine can read it: put the "
        f"address into {variable}; PostgreSQL's may also be in a password file (PGPASSFILE)"
    )


def require_address(
    given: str | None, environment: Mapping[str, str], otherwise: str | None = None
) -> LedgerAddress:
    """The address that was given, else that of PAYMENTS_LEDGER, else `otherwise`. Raises CommandEnded."""
    text = given or environment.get(VARIABLE)
    if text:
        try:
            is_database(text)
        except BulkError as unknown:
            raise CommandEnded(f"{without_password(text)}: {unknown}", Exit.USAGE) from None
        return LedgerAddress(text, is_default=not given)
    if otherwise is None:
        missing = f"no ledger: give its path or address (postgresql://…), or set {VARIABLE}"
        raise CommandEnded(missing, Exit.USAGE)
    return LedgerAddress(otherwise)


def require_database(address: LedgerAddress, why: str) -> LedgerAddress:
    """The address, of a database. Raises CommandEnded, with why it must be one."""
    if not address.is_database:
        problem = f"{address.shown}: is not the address of a database (postgresql://…)"
        raise CommandEnded(f"{problem}; {why}", Exit.USAGE)
    return address


def require_batch(address: LedgerAddress) -> LedgerAddress:
    """The address, with a batch's name if it is a database's. Raises CommandEnded."""
    if address.is_database and not address.batch_id:
        listed = f"`{address.command('batches')}` lists them"
        problem = f"{address.shown}: a database has many batches; name one with --batch-id: {listed}"
        raise CommandEnded(problem, Exit.USAGE)
    return address


Url = Annotated[str | None, Parameter(metavar="URL")]
_SERVICE: Final = "The service's address; PAYMENTS_BASE_URL unless given."
BaseUrl = Annotated[Url, Parameter(help=_SERVICE)]
Path = Annotated[str, Parameter(metavar="PATH")]
Ledger = Annotated[str | None, Parameter(metavar="LEDGER")]
_LEDGER: Final = "The ledger, a file or a database (postgresql://…); PAYMENTS_LEDGER unless given."
LedgerArgument = Annotated[str | None, Parameter(metavar="LEDGER", help=_LEDGER)]
_DATABASE: Final = "The database (postgresql://…); PAYMENTS_LEDGER unless given."
_INSECURE: Final = "Use a database on another machine without verified TLS (sslmode=verify-full)."
Insecure = Annotated[bool, Parameter(negative="", show_default=False, help=_INSECURE)]
_BATCH: Final = "The batch's name. A database has many batches."
BatchId = Annotated[str | None, Parameter(metavar="NAME", help=_BATCH)]
DatabaseArgument = Annotated[str | None, Parameter(metavar="DATABASE", help=_DATABASE)]
Duration = Annotated[
    float, Parameter(converter=_reading(seconds_of), metavar="DURATION", show_default=shortest)
]
Age = Annotated[float, Parameter(converter=_reading(age_of), metavar="AGE")]
_PATIENCE: Final = (
    "How long rows in doubt are posted again and looked for, once the others are done: 90, 90s, 15m, 2h."
)
Patience = Annotated[Duration, Parameter(help=_PATIENCE)]
_DRAIN: Final = "How long rows under way may take to end after SIGTERM or Ctrl-C."
Drain = Annotated[Duration, Parameter(help=_DRAIN)]
Amount = Annotated[Decimal | None, Parameter(converter=_reading(amount_of), metavar="AMOUNT")]
Delimiter = Annotated[str | None, Parameter(converter=_reading(delimiter_of), metavar="SIGN")]
Share = Annotated[float | None, Parameter(converter=_reading(share_of), metavar="SHARE")]
Rows = Annotated[int | None, Parameter(validator=Number(gte=1), metavar="N")]
Concurrency = Annotated[int, Parameter(validator=Number(gte=1, lte=1024), metavar="N")]
Totals = Annotated[list[str] | None, Parameter(metavar='"CUR AMOUNT"', negative="")]
Names = Annotated[list[str] | None, Parameter(metavar="NAME", negative="")]
RowNumbers = Annotated[
    list[Annotated[int, Parameter(validator=Number(gte=1))]] | None, Parameter(name="--row", negative="")
]
States = Annotated[list[StateName] | None, Parameter(name="--state", negative="")]

Map = Annotated[list[str] | None, Parameter(name="--map", negative="", metavar="COLUMN=OURS")]
MapFile = Annotated[Path | None, Parameter(metavar="FILE")]


_NOWHERE: Final = LedgerAddress("")
_FORM: Final = ("strict_amounts", "delimiter", "sheet", "with_hidden", "mapping")
_READING: Final = ("batch_id", "skip_invalid", "rejects")
_RULES: Final = ("max_amount", "max_rows", "max_failure_rate")
_PACE: Final = ("concurrency", "patience", "drain", "wait_final")
_WORK: Final = ("slots", "batch_id", "until_idle", "concurrency", "patience", "drain")


class Located(Protocol):
    """Options of a command about a ledger."""

    @property
    def insecure_database(self) -> bool:
        """Whether a database on another machine may be used without verified TLS."""


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class DatabaseOptions:
    """The options of commands about a database."""

    insecure_database: Insecure = False


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class BatchOptions:
    """The options of commands about one batch."""

    batch_id: BatchId = None
    insecure_database: Insecure = False


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class ForgetOptions:
    """The options of `payments payouts forget`. The texts are its help."""

    closed_before: Age
    """Only batches that were closed so long ago: 90d."""
    unsettled: Names = None
    """A batch to forget although it is not settled, or not all its rows were paid; once for each."""
    insecure_database: Insecure = False


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class PlanOptions:
    """The options of `payments payouts confirm`. The texts are its help."""

    batch_id: BatchId = None
    confirm_total: Totals = None
    """The total to pay, such as "XOF 1200.50", for each currency, instead of typing it."""
    max_amount: Amount = None
    """Take no row that would bring a currency over this."""
    max_rows: Rows = None
    """Take no more rows than this."""
    max_failure_rate: Share = None
    """Take no more rows once more than this share is rejected or in conflict: 0.05, or 5%."""
    lossy_standby: Flag = False
    """Accept a standby that may lack the last commits after a fail-over. Said once for a batch."""
    insecure_database: Insecure = False

    @property
    def rules(self) -> dict[str, Any]:
        """Options of `SharedBatch.plan`."""
        return {name: getattr(self, name) for name in _RULES}


@Parameter(name="*", group=MORE)
@attrs.frozen(kw_only=True)
class RunOptions:
    """The options of `payments payouts run`. The texts are its help."""

    file: Annotated[str, Parameter(parse=False)] = ""
    address: Annotated[LedgerAddress, Parameter(parse=False)] = _NOWHERE
    """The ledger, with its password."""
    ledger: Ledger = None
    """What remembers every row: a file on a local disk, or a database (postgresql://…) from which many
    machines work. PAYMENTS_LEDGER unless given, else FILE.ledger."""
    batch_id: Annotated[str | None, USED, Parameter(metavar="ID")] = None
    """Names the batch; else it is the hash of the input. A live key needs a name, unless every row has a
    reference of its own."""
    base_url: BaseUrl = None
    dry_run: Annotated[Flag, USED] = False
    """Read and check every row, and send nothing."""
    skip_invalid: Annotated[Flag, USED] = False
    """Pay the rows without faults; else one fault refuses the whole file."""
    rejects: Path | None = None
    """Where to write the rows with faults, each with the reference that it has in this batch."""
    strict_amounts: Flag = False
    """Refuse amounts of more than 15 digits, which otherwise cause a warning."""
    delimiter: Delimiter = None
    """What separates the cells of a CSV file: one character, such as ";", or `tab`; a comma unless given."""
    sheet: Annotated[str | None, USED, Parameter(metavar="NAME")] = None
    """The sheet of a workbook, if more than one has values."""
    with_hidden: Flag = False
    """Pay the rows of a workbook that are hidden, too; else each is a fault."""
    map: Annotated[Map, USED] = None
    """What a column of FILE is: "Phone=instrument.phone_number". "Note=" leaves one out. Repeatable."""
    map_file: Annotated[MapFile, USED] = None
    """A TOML file with [columns], and [constants] that all rows share, such as currency = "GHS". --help-all
    shows a whole one."""
    mapping: Annotated[ColumnMapping | None, Parameter(parse=False)] = None
    """Both."""
    accept_edits: Flag = False
    """The file was edited since: take the corrected rows that were not paid yet."""
    pay_again: Flag = False
    """The same rows were paid under another batch id: pay them once more."""
    confirm_total: Annotated[Totals, USED] = None
    """The total to pay, such as "XOF 1200.50", for each currency, instead of typing it."""
    max_amount: Amount = None
    """Take no row that would bring a currency over this."""
    max_rows: Rows = None
    """Take no more rows than this, earlier runs included."""
    max_failure_rate: Share = None
    """Take no more rows once more than this share is rejected or in conflict: 0.05, or 5%."""
    concurrency: Concurrency = 256
    """Rows under way at a time, and connections. It bounds the speed: payouts a second x seconds until the
    service answers. 256 pay 1,000 a second at up to a quarter of a second each."""
    patience: Patience = 3600.0
    drain: Drain = 30.0
    wait_final: Annotated[Duration | None, USED] = None
    """How long to follow the created payouts until they are final."""
    open: Annotated[Flag, USED] = False
    """Open the batch's page in a browser. On a terminal it stays at the end until Ctrl-C."""

    workers: Annotated[int, Parameter(validator=Number(gte=0, lte=64), metavar="N")] = 1
    """Processes on this machine, if the ledger is a database; 0 only plans and watches. More processes pay no
    faster: one keeps up with the whole limit of a key."""
    detach: Flag = False
    """End once the batch is planned: workers (`worker`) pay it. Only with a database."""
    insecure_database: Insecure = False
    lossy_standby: Flag = False
    """Accept a standby that may lack the last commits after a fail-over. Said once for a batch."""

    @property
    def form(self) -> dict[str, Any]:
        """Options of `open_source`."""
        return {name: getattr(self, name) for name in _FORM}

    @property
    def reading(self) -> dict[str, Any]:
        """Options of `PayoutBatch.load` and `preview`."""
        return {name: getattr(self, name) for name in _READING}

    @property
    def rules(self) -> dict[str, Any]:
        """Options of `PayoutBatch.plan`."""
        return {name: getattr(self, name) for name in _RULES}

    @property
    def pace(self) -> dict[str, Any]:
        """Options of `PayoutBatch.run`."""
        return {name: getattr(self, name) for name in (*_RULES, *_PACE)}

    @property
    def worker_arguments(self) -> tuple[str, ...]:
        """Arguments of one of this run's worker processes."""
        share = -(-self.concurrency // max(self.workers, 1))
        times = ("--patience", f"{self.patience:.3f}", "--drain", f"{self.drain:.3f}")
        address = ("--base-url", self.base_url) if self.base_url else ()
        insecure = ("--insecure-database",) if self.insecure_database else ()
        batch = ("--batch-id", str(self.address.batch_id), "--until-idle", "--until-eof")
        return (*batch, "--concurrency", str(share), *times, *address, *insecure)


@Parameter(name="*", group=MORE)
@attrs.frozen(kw_only=True)
class WorkerArguments:
    """The options of `payments payouts worker`. The texts are its help."""

    ledger: Annotated[Ledger, USED] = None
    """The database (postgresql://…); PAYMENTS_LEDGER unless given."""
    batch_id: Annotated[str | None, USED, Parameter(metavar="NAME")] = None
    """Work on this batch only."""
    limit_store: Url = None
    """What keeps the fleet's rate limit (postgresql://…, redis://…); PAYMENTS_LIMIT_STORE unless given, else
    the ledger's database."""
    slots: Annotated[int, Parameter(validator=Number(gte=1, lte=64), metavar="N")] = 2
    """Chunks held at a time. With two, a request that takes long leaves nobody idle."""
    concurrency: Concurrency = 256
    """Rows under way at a time, and connections."""
    patience: Patience = 3600.0
    drain: Drain = 30.0
    until_idle: Annotated[Flag, USED] = False
    """End when there is nothing left to do."""
    until_eof: Flag = False
    """End in order when the standard input is closed: for a program that starts workers."""
    base_url: BaseUrl = None
    insecure_database: Insecure = False

    @property
    def settings(self) -> dict[str, Any]:
        """Options of `bulk.workers.PayoutWorker`."""
        return {name: getattr(self, name) for name in _WORK}


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class RecoverOptions:
    """The options of `payments payouts recover`. The texts are its help."""

    batch_id: BatchId = None
    commands_complete: Flag = False
    """No command of yours is missing from the list that is shown: let workers go on."""
    by_hand: Flag = False
    """Commits were lost although nothing shows it, as after a restored disk image; once for each restore."""
    base_url: BaseUrl = None
    insecure_database: Insecure = False


@Parameter(name="*")
@attrs.frozen(kw_only=True)
class RetryOptions:
    """The options of `payments payouts retry-failed`. The texts are its help."""

    batch_id: BatchId = None

    row: RowNumbers = None
    """Only this row, by its number; repeat it for more."""
    rejected: Flag = False
    """The rejected rows instead, unchanged; for a corrected file use `run --accept-edits`."""
    dry_run: Flag = False
    """Only name the rows."""
    confirm_total: Totals = None
    """The total to pay again, such as "XOF 1200.50", for each currency, instead of typing it."""
    base_url: BaseUrl = None
    insecure_database: Insecure = False
