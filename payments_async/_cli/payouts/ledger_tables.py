"""`payments payouts ledger init`, `upgrade` and `check`: the tables, rights and settings of a database."""

from __future__ import annotations

from typing import Any, Final

import attrs

from ...bulk import DatabaseReport, Standbys
from ...bulk._texts.ledger_address import LedgerAddress
from ...bulk.ledger_errors import DatabaseUnfit
from .._exit_codes import CommandEnded, Exit
from .command_context import CommandContext, open_database
from .options import RoleName

_NO_TABLES: Final = "none yet: `payments payouts ledger init` makes them"
_LOSSY: Final = ": a fail-over may lose the last commits, and a live `run` wants --lossy-standby once"


async def init(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Make the tables. Raises LedgerError."""
    async with open_database(ledger) as database:
        made = await database.init()
    context.show.heading(ledger.shown)
    context.show.step("Tables", "made" if made else "already there; nothing was changed", made=made)
    return Exit.DONE


async def upgrade(ledger: LedgerAddress, context: CommandContext) -> Exit:
    """Bring the tables to this version's form. Raises LedgerError."""
    async with open_database(ledger) as database:
        before, now = await database.upgrade()
    context.show.heading(ledger.shown)
    text = (
        f"number {now} already; nothing was changed"
        if before == now
        else f"number {before} before, now {now}"
    )
    context.show.step("Tables", text, before=before, now=now)
    return Exit.DONE


async def check(ledger: LedgerAddress, role: RoleName, context: CommandContext) -> Exit:
    """Inspect a database. Raises CommandEnded when it cannot be used as it is, and LedgerError."""
    try:
        async with open_database(ledger) as database:
            report = await database.check(role)
    except DatabaseUnfit as error:
        raise CommandEnded(f"{error.path}: {error.problem}", Exit.REFUSED) from None
    context.show.heading(ledger.shown)
    if context.as_json:
        context.show.step("Database", "", good=not report.problems, **_facts(report))
    else:
        _show_report(report, context)
    if report.problems:
        raise CommandEnded(f"{report.label}: {'; '.join(report.problems)}", Exit.REFUSED)
    return Exit.DONE


def _facts(report: DatabaseReport) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in attrs.asdict(report).items()
    }


def _show_report(report: DatabaseReport, context: CommandContext) -> None:
    show = context.show
    show.step("Server", f"PostgreSQL {report.server_version}")
    tables = "there, and may not be read" if report.has_tables else _NO_TABLES
    tables = tables if report.tables is None else f"number {report.tables}"
    show.step("Tables", tables, good=None if report.tables is None else True)
    show.step(
        "TLS", "encrypted" if report.is_encrypted else "not encrypted", good=report.is_encrypted or None
    )
    show.step("Clock", f"{report.clock_ahead:+.3f} s from this machine's; the database's decides")
    lossy = report.standbys is Standbys.ASYNCHRONOUS
    show.step("Standbys", f"{report.standbys}{_LOSSY if lossy else ''}", good=None if lossy else True)
    show.step("Pooler", "one that keeps sessions" if report.is_pooled else "none")
    run, worker = report.connections["run"], report.connections["worker"]
    needed = f"a run needs up to {run}, and {worker} for each worker; a pool must be as large"
    show.step("Sessions", needed, good=None)
    for name, value in sorted(report.settings.items()):
        show.step("Setting", f"{name} = {value or '(empty)'}", good=None)
    for name, texts in (("Missing", report.grants), ("Warning", report.warnings)):
        for text in texts:
            is_sql = name == "Missing"
            show.step(name, f"{text};" if is_sql else text, good=False, wrap=not is_sql)
    for problem in report.problems:
        show.step("Problem", problem, good=False)
