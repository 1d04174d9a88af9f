"""`payments guard check`: the rows of a file that a guard would refuse, and its totals beside the sums."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._codec import encode
from ..._guard.key_guard import KeyGuard
from ..._guard.rules import GuardRefusal
from ...bulk._texts.quantities import counted, money_text, plain_sums
from ...bulk.sources import FaultCollector, FileSource, Row, RowFault, open_source
from ...guard import Guard, window_name
from ...models.common import amount_text, grouped
from .._exit_codes import CommandEnded, Exit, exit_of
from .._output import Show, show_for
from .state import NOBODY, guard_file, joined

_UNOPENED: Final = "unopened"
"""Stands for the limit store, which rules do not need."""


@attrs.define
class JudgedFile:
    """What a guard says of a file's rows."""

    passed: int = 0
    refused: int = 0
    totals: dict[str, Decimal] = attrs.field(factory=dict)
    """{currency: the sum of the rows that would pass}."""


def check(file: str, path: str | None, form: Mapping[str, Any], *, as_json: bool) -> Exit:
    """List the rows that would be refused. `form`: options of `open_source`.

    Raises CommandEnded, ConfigurationError, BulkError.
    """
    path = guard_file(path, os.environ)
    guard, _ = joined(Guard.from_file(path), NOBODY, _UNOPENED)
    source = open_source(file, **form)
    show = show_for(as_json=as_json)
    show.heading(file, f"judged by {path}; nothing is sent or recorded")
    faults = FaultCollector(source)
    found = _judged(guard, source, faults, show)
    for note in _notes(guard, found.totals):
        show.step("Sum", note, good=None, note=note)
    _show_totals(found, show)
    if (error := faults.error()) is not None:
        raise CommandEnded(str(error), exit_of(error)) from error
    return Exit.REFUSED if found.refused else Exit.DONE


def _judged(guard: KeyGuard, source: FileSource, faults: FaultCollector, show: Show) -> JudgedFile:
    found = JudgedFile()
    for item in source.read():
        if isinstance(item, RowFault):
            faults.add(item)
            continue
        payment = guard.judged(encode.encode(item.request))
        if isinstance(payment, GuardRefusal):
            found.refused += 1
            facts: dict[str, Any] = {
                "line": item.line,
                "row": item.number,
                "rule": payment.rule,
                "reason": payment.text,
            }
            show.step("Refused", f"{_where(item)} ({payment.rule}): {payment.text}", good=False, **facts)
        else:
            found.passed += 1
            found.totals[payment.currency] = found.totals.get(payment.currency, Decimal(0)) + payment.amount
    return found


def _notes(guard: KeyGuard, totals: Mapping[str, Decimal]) -> Iterator[str]:
    """A sentence for each sum that the file does not fit into."""
    for currency, total in sorted(totals.items()):
        for seconds, most in guard.limits.get(currency, ()):
            if total > most:
                total_text, window = amount_text(currency, total), window_name(seconds)
                shown = grouped(most, currency)
                yield f"{total_text} is above the sum of {window}, {shown}: a run waits for room"


def _show_totals(found: JudgedFile, show: Show) -> None:
    facts: dict[str, Any] = {
        "passed": found.passed,
        "refused": found.refused,
        "totals": plain_sums(found.totals),
    }
    text = f"{counted(found.passed, 'payout')}, {money_text(found.totals)}, would pass"
    if found.refused:
        text += f"; {counted(found.refused, 'row')} would be refused, and with them the file"
    show.step("Checked", text, good=not found.refused, **facts)


def _where(row: Row) -> str:
    return f"row {row.number}" if row.line is None else f"line {row.line}"
