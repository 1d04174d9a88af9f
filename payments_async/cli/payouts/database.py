"""`payments payouts ledger init`, `upgrade` and `check`: the tables, rights and settings of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import attrs

from ...bulk.ledger_errors import DatabaseUnfit
from ...bulk.protocol.recovery import Standbys
from ...bulk.workers.planning import connections
from ...bulk.workers.settings import WorkerSettings
from .._exit_codes import CommandEnded, Exit
from .ledger_address import LedgerAddress
from .session import CommandContext, open_database

if TYPE_CHECKING:
    from ...bulk.ledger.postgresql.setup import DatabaseReport

_NO_TABLES: Final = "none yet: `payments payouts ledger init` makes them"
_LOSSY: Final = ": a fail-over may lose the last commits, and a live `run` wants --lossy-standby once"

_OF_RUN: Final = 4
"""Connections of `run` itself: the batch, its figures, the rate limit, and one that tells poolers apart."""


async def init(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Make the tables. Raises LedgerError."""
    async with open_database(ledger, tables=False) as database:
        from ...bulk.ledger.postgresql import setup

        made = await setup.make_tables(database)
        await setup.require_tables(database, create=False)
    context.show.heading(ledger.shown)
    context.show.step("Tables", "made" if made else "already there; nothing was changed", made=made)
    return Exit.DONE


async def upgrade(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Bring the tables to this version's form. Raises LedgerError."""
    async with open_database(ledger, tables=False) as database:
        from ...bulk.ledger.postgresql import setup
        from ...bulk.ledger.postgresql.schema import SCHEMA

        before = await setup.upgrade(database)
    context.show.heading(ledger.shown)
    text = (
        f"number {SCHEMA} already; nothing was changed"
        if before == SCHEMA
        else f"number {before} before, now {SCHEMA}"
    )
    context.show.step("Tables", text, before=before, now=SCHEMA)
    return Exit.DONE


async def check(ledger: LedgerAddress, role: str, context: CommandContext) -> Exit:
    """Inspect a database. Raises CommandEnded when it cannot be used as it is, and LedgerError."""
    try:
        async with open_database(ledger, tables=False) as database:
            from ...bulk.ledger.postgresql import setup
            from ...bulk.ledger.postgresql.standbys import standbys as found_standbys

            report = await setup.inspect(database, setup.Role(role))
            standbys, is_pooled = await found_standbys(database), database.server.is_pooled
    except DatabaseUnfit as error:
        raise CommandEnded(f"{error.path}: {error.problem}", Exit.REFUSED) from None
    context.show.heading(ledger.shown)
    if context.as_json:
        facts = {
            **_facts(report),
            "standbys": str(standbys),
            "is_pooled": is_pooled,
            "connections": {"run": _OF_RUN, "worker": connections(WorkerSettings().slots)},
        }
        context.show.step("Database", "", good=not report.problems, **facts)
    else:
        _show_report(report, standbys, context, is_pooled=is_pooled)
    if report.problems:
        raise CommandEnded(f"{report.label}: {'; '.join(report.problems)}", Exit.REFUSED)
    return Exit.DONE


def _facts(report: DatabaseReport) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in attrs.asdict(report).items()
    }


def _show_report(
    report: DatabaseReport, standbys: Standbys, context: CommandContext, *, is_pooled: bool
) -> None:
    show = context.show
    show.step("Server", f"PostgreSQL {report.server_version}")
    tables = "there, and may not be read" if report.has_tables else _NO_TABLES
    tables = tables if report.tables is None else f"number {report.tables}"
    show.step("Tables", tables, good=None if report.tables is None else True)
    show.step(
        "TLS", "encrypted" if report.is_encrypted else "not encrypted", good=report.is_encrypted or None
    )
    show.step("Clock", f"{report.clock_ahead:+.3f} s from this machine's; the database's decides")
    lossy = standbys is Standbys.ASYNCHRONOUS
    show.step("Standbys", f"{standbys}{_LOSSY if lossy else ''}", good=None if lossy else True)
    show.step("Pooler", "one that keeps sessions" if is_pooled else "none")
    worker = connections(WorkerSettings().slots)
    needed = f"a run needs up to {_OF_RUN}, and {worker} for each worker; a pool must be as large"
    show.step("Sessions", needed, good=None)
    for name, value in sorted(report.settings.items()):
        show.step("Setting", f"{name} = {value or '(empty)'}", good=None)
    for name, texts in (("Missing", report.grants), ("Warning", report.warnings)):
        for text in texts:
            is_sql = name == "Missing"
            show.step(name, f"{text};" if is_sql else text, good=False, wrap=not is_sql)
    for problem in report.problems:
        show.step("Problem", problem, good=False)
