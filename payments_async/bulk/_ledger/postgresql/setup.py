"""Makes the tables, and checks that a database can hold a ledger and a user may work with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from .... import __version__
from ...._postgresql import MAKING_TABLES
from ...._rate_limit.store_postgresql import TABLES as LIMIT_TABLES
from ...ledger_errors import LedgerMissing, LedgerNewer, LedgerOlder, LedgerRefused, RightsMissing
from ..batches import FORM
from ..operators import DatabaseReport, Role
from ..statements import Statement
from ..stored_rows import readable, undamaged
from ..tables import FIGURES
from ..transactions import Transaction
from .batches import standbys
from .database import Database
from .schema import RIGHTS, SCHEMA, TABLES, UPGRADES

_ALL: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
_ROWS: Final = ("SELECT", "INSERT", "UPDATE")
_RIGHTS: Final[Mapping[Role, Mapping[str, Sequence[str]]]] = {
    Role.READER: {
        "": ("USAGE",),
        "meta": ("SELECT",),
        "batches": ("SELECT",),
        "chunks": ("SELECT",),
        "workers": ("SELECT",),
        "series": ("SELECT",),
        "answer_times": ("SELECT",),
        "forgotten_references": ("SELECT",),
    },
    Role.WORKER: {
        "": ("USAGE",),
        "meta": ("SELECT",),
        "batches": ("SELECT", "UPDATE"),
        "chunks": ("SELECT", "UPDATE"),
        "workers": _ALL,
        "forgotten_references": ("SELECT",),
        **dict.fromkeys(FIGURES, _ALL),
        "limits": _ROWS,
        "budgets": _ROWS,
    },
    Role.PLANNER: {
        "": ("USAGE", "CREATE"),
        "meta": ("SELECT",),
        **dict.fromkeys(("batches", "chunks", "workers", *FIGURES, "forgotten_references"), _ALL),
        "limits": _ROWS,
        "budgets": _ROWS,
    },
}
"""{role: {table, "" for the schema: rights}}. Rights on a batch's rows follow those on chunks."""
_TABLE: Final = (
    "SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'payments' AND c.relname = "
)
_CLOSED_TABLES: Final[Statement] = (
    "SELECT t.rights, quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "JOIN unnest(%b::text[], %b::text[]) AS t(kind, rights) "
    "ON c.relname ~ ('^' || t.kind || '_[0-9a-f]{16}$') WHERE n.nspname = 'payments' AND EXISTS ("
    "SELECT FROM unnest(string_to_array(t.rights, ', ')) AS r WHERE NOT has_table_privilege(c.oid, r)) "
    "ORDER BY 2",
    ([*RIGHTS], [*RIGHTS.values()]),
)
_THERE: Final[Statement] = (f"SELECT EXISTS ({_TABLE}'meta')", ())  # needs no right on the schema
_VERSION: Final[Statement] = ("SELECT version FROM payments.meta", ())
_NAMES: Final[Statement] = ("SELECT quote_ident(current_user), quote_ident(current_database())", ())
_MAY_MAKE: Final[Statement] = (
    "SELECT has_database_privilege(current_database(), 'CREATE'), n.oid IS NULL "
    "OR has_schema_privilege(n.oid, 'USAGE') AND has_schema_privilege(n.oid, 'CREATE') "
    "FROM (SELECT) one LEFT JOIN pg_namespace n ON n.nspname = 'payments'",
    (),
)
_OF_ANOTHER_FORM: Final[Statement] = (
    "SELECT batch_id, schema FROM payments.batches WHERE schema <> %s "
    "AND state NOT IN ('closed', 'forgotten') ORDER BY created_at LIMIT 1",
    (FORM,),
)
_LOCK: Final[Statement] = (MAKING_TABLES, ())
_MADE: Final = "INSERT INTO payments.meta (version, made_by) VALUES (%s, %s)"
_RAISED: Final = "UPDATE payments.meta SET version = %s, made_by = %s, made_at = clock_timestamp()"


async def require_tables(database: Database, *, create: bool) -> None:
    """Require the tables of this version; with `create` they are made when there are none.

    Raises LedgerMissing, LedgerNewer, LedgerOlder or RightsMissing.
    """
    version = await tables_version(database)
    if version is None and not create:
        raise LedgerMissing(database.label, "holds no ledger's tables")
    if version is None:
        await make_tables(database)
        version = await tables_version(database) or 0
    if version > SCHEMA:
        raise LedgerNewer(database.label, found=version, known=SCHEMA)
    if version < SCHEMA:
        raise LedgerOlder(database.label, found=version, known=SCHEMA)


async def tables_version(database: Database) -> int | None:
    """Read the version of a database's tables; None when there are none.

    Raises RightsMissing, and LedgerDamaged for another's table of that name.
    """
    (((there,),),) = await database.read(_THERE)
    if not there:
        return None
    await require_rights(database, Role.READER)
    (found,) = await database.read(_VERSION)
    with undamaged(database.label), readable("payments.meta"):
        ((version,),) = found
        if version < 1:
            raise ValueError
        return int(version)


async def make_tables(database: Database) -> bool:
    """Make the tables unless they are there. Returns whether they were made. Raises RightsMissing."""
    ((there,),), (may_make,), (names,) = await database.read(_THERE, _MAY_MAKE, _NAMES)
    if there:
        return False
    if lacking := _lacking_to_make(*may_make, *names):
        raise RightsMissing(database.label, lacking)
    return await database.commit(_make)


def _lacking_to_make(in_database: bool, in_schema: bool, user: str, name: str) -> tuple[str, ...]:
    """The statements that give a user the rights that it lacks to make the tables."""
    database = () if in_database else (f"GRANT CREATE ON DATABASE {name} TO {user}",)
    schema = () if in_schema else (f"GRANT USAGE, CREATE ON SCHEMA payments TO {user}",)
    return (*database, *schema)


async def _make(transaction: Transaction) -> bool:
    _, ((there,),) = await transaction.read(_LOCK, _THERE)
    if not there:
        transaction.write(*((statement, ()) for statement in (*TABLES, *LIMIT_TABLES)))
        transaction.write((_MADE, (SCHEMA, __version__)))
    return not there


async def upgrade(database: Database) -> int:
    """Bring tables of an older version to this one's form, while nobody works with them.

    Returns the version they had. Raises LedgerMissing, LedgerNewer, or RightsMissing; and LedgerRefused while
    a batch is not closed that this version could not pay.
    """

    async def work(transaction: Transaction) -> int:
        _, ((version,),), unfinished = await transaction.read(_LOCK, _VERSION, _OF_ANOTHER_FORM)
        for name, form in unfinished if version < SCHEMA else ():
            why = f"the form of batch {name} is number {form}, and this version works with {FORM}"
            way_out = "finish or discard it with the version that began it, and upgrade then"
            raise LedgerRefused(database.label, None, f"{why}; {way_out}")
        for number in range(version, SCHEMA):
            transaction.write(*((statement, ()) for statement in UPGRADES[number]))
        if version < SCHEMA:
            transaction.write((_RAISED, (SCHEMA, __version__)))
        return int(version)

    found = await tables_version(database)
    if found is None:
        raise LedgerMissing(database.label, "holds no ledger's tables")
    if found > SCHEMA:
        raise LedgerNewer(database.label, found=found, known=SCHEMA)
    return await database.commit(work)


# Rights


def grants(role: Role, user: str, *, lacking: Mapping[str, Sequence[str]] | None = None) -> Iterator[str]:
    """Make the statements that give a user the rights of a role, or the `lacking` ones."""
    for table, rights in (_RIGHTS[role] if lacking is None else lacking).items():
        what = f"payments.{table}" if table else "SCHEMA payments"
        yield f"GRANT {', '.join(rights)} ON {what} TO {user}"


async def missing_rights(database: Database, role: Role) -> tuple[str, ...]:
    """List the statements that give the database's user the rights of a role that it lacks."""
    wanted = [(table, right) for table, rights in _RIGHTS[role].items() for right in rights]
    names, *found = await database.read(_NAMES, *(_has(*each) for each in wanted))
    lacking: dict[str, list[str]] = {}
    for (table, right), ((has,),) in zip(wanted, found, strict=True):
        if has is False:  # None for a table that is not there, as tables of an older version lack some
            lacking.setdefault(table, []).append(right)
    return tuple(grants(role, names[0][0], lacking=lacking))


async def missing_row_rights(database: Database) -> tuple[str, ...]:
    """List the statements that give the user rights on the rows of batches that were imported without it."""
    (((user, _),), tables) = await database.read(_NAMES, _CLOSED_TABLES)
    return tuple(f"GRANT {rights} ON payments.{table} TO {user}" for rights, table in tables)


def _has(table: str, right: str) -> Statement:
    # by number: to name them needs a right
    if not table:
        return "SELECT has_schema_privilege(oid, %s) FROM pg_namespace WHERE nspname = 'payments'", (right,)
    return f"SELECT has_table_privilege(({_TABLE}%s), %s)", (table, right)


async def require_rights(database: Database, role: Role) -> None:
    """Raise RightsMissing when the database's user lacks rights of a role."""
    if lacking := await missing_rights(database, role):
        raise RightsMissing(database.label, lacking)


# Inspection

_SETTINGS: Final = (
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "synchronous_standby_names",
    "max_connections",
    "statement_timeout",
    "transaction_timeout",
    "default_transaction_read_only",
)
_STATE: Final[Statement] = (
    "SELECT extract(epoch FROM clock_timestamp())::float8, current_setting('server_version'), "
    "current_setting('transaction_read_only') = 'on'",
    (),
)
_READ_SETTINGS: Final = "SELECT name, reset_val FROM pg_settings WHERE name = ANY(%s) ORDER BY name"
_CLOCK_OFF: Final = 2.0
"""Seconds of difference between two machines' clocks that are worth a warning."""


async def inspect(database: Database, role: Role = Role.PLANNER) -> DatabaseReport:
    """Inspect a database that could be connected to: tables, rights of the user, clock, settings.

    Changes nothing. Raises LedgerError.
    """
    asked = database.runtime.now().timestamp()
    state, names, may_make, ((there,),), settings = await database.read(
        _STATE, _NAMES, _MAY_MAKE, _THERE, (_READ_SETTINGS, (list(_SETTINGS),))
    )
    took = database.runtime.now().timestamp() - asked
    now, version, read_only = state[0]
    tables, lacking = None, _lacking_to_make(*may_make[0], *names[0])
    if there:
        lacking = await missing_rights(database, role)
        lacking += () if role is Role.READER else await missing_row_rights(database)
        tables = await tables_version(database) if not await missing_rights(database, Role.READER) else None
    found: dict[str, str] = dict(settings)
    return DatabaseReport(
        label=database.label,
        server_version=version,
        has_tables=there,
        tables=tables,
        is_encrypted=database.server.is_encrypted,
        clock_ahead=round(now - asked - took / 2, 3),
        settings=found,
        grants=lacking,
        problems=tuple(_problems(tables, lacking, read_only=read_only)),
        warnings=tuple(_warnings(found, now - asked - took / 2)),
        standbys=await standbys(database),
        is_pooled=database.server.is_pooled,
    )


def _problems(tables: int | None, lacking: Sequence[str], *, read_only: bool) -> Iterator[str]:
    if read_only:
        yield "it takes no changes: it is read-only"
    if tables is not None and tables != SCHEMA:
        yield f"its tables are number {tables}, and this version works with {SCHEMA}"
    if lacking:
        yield "its user lacks rights"


def _warnings(settings: Mapping[str, str], ahead: float) -> Iterator[str]:
    for name in ("fsync", "full_page_writes"):
        if settings.get(name) == "off":
            yield f"{name} is off: after a power cut the ledger may be damaged"
    if settings.get("synchronous_commit") == "off":
        yield "synchronous_commit is off for this user: sessions of the ledger turn it on"
    if abs(ahead) > _CLOCK_OFF:
        yield f"its clock differs from this machine's by {ahead:+.1f} s; the database's decides"
