"""When the runs of a ledger were at work, by the entries of its chain."""

from __future__ import annotations

from typing import Final

from aiosqlite import Connection

from ...protocol.run_figures import RunTime
from .driver import run

_RUNS: Final = """
    SELECT session, max(number), min(wall) FILTER (WHERE kind IN ('claim', 'resend')) AS began, max(wall)
    FROM entries GROUP BY session HAVING began IS NOT NULL ORDER BY max(number)
"""
_IS_CUT_OFF: Final = """
    SELECT count(*) FROM (
        SELECT json_extract(row.value, '$[1]') AS state, max(entry.number)
        FROM (
            SELECT number, changes FROM entries
            WHERE number <= ? AND session = ? AND kind NOT IN ('import', 'header')
            ORDER BY number DESC LIMIT 64
        ) AS entry, json_each(entry.changes) AS row
        GROUP BY json_extract(row.value, '$[0]')
    ) WHERE state = 'IN_FLIGHT'
"""
"""Rows that the last entries of a session leave in flight: what was under way had an entry just before."""


async def run_times(db: Connection) -> tuple[RunTime, ...]:
    """Read when each run was at work that sent a row, the last one at the end."""
    found = []
    for session, last, began, ended in await run(db, _RUNS):
        ((left,),) = await run(db, _IS_CUT_OFF, last, session)
        found.append(RunTime(float(began), float(ended), is_cut_off=bool(left)))
    return tuple(found)
