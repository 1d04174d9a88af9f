"""What an input would come to: every row read and checked, nothing imported, nothing sent."""

from __future__ import annotations

from typing import Final

import attrs

from .._report import ImportReport
from ..ledger.ledger import Ledger
from ..protocol.records import Binding
from ..protocol.stop_rules import Account
from ..protocol.totals import payable
from ..sources import Source
from . import edits
from .load import (
    LoadSettings,
    first_survey,
    importable,
    ledger_beside,
    refuse_rejects,
    require_place,
    same_file,
    stat_of,
)
from .reader import SourceReader
from .survey import accepted, survey

_LIVE: Final = "a live key needs a batch id here, as not every row has a reference of its own"


async def preview(
    path: str, ledger: Ledger | None, place: Account | None, source: Source, settings: LoadSettings
) -> ImportReport:
    """The report that `load` would give for the ledger at `path`; `ledger` is it, when it holds a batch.

    Rows that the ledger has otherwise are told in the report. Raises as `load` does otherwise.
    """
    refuse_rejects(settings.rejects, path, source)
    stat = stat_of(source)
    if ledger is not None:
        recorded = ledger.header.binding
        here = place or Account(recorded.environment, recorded.base_url, recorded.key_fingerprint)
        return await _beside(ledger, require_place(ledger, here, settings), source, settings, stat)
    here = place or Account("", "", "")
    found, identifiers = await first_survey(source, here, settings)
    binding = Binding(
        identifiers.batch_id, here.environment, here.base_url, here.key, found.fingerprint, stat
    )
    reading = await importable(found, identifiers, settings)
    elsewhere = ledger_beside(path, binding)
    told = [] if elsewhere is None else [elsewhere.problem]
    live = [_LIVE] if place is None and settings.batch_id is None and reading.unnamed else []
    warnings = (*told, *reading.warnings, *live)
    return ImportReport(
        identifiers.batch_id, reading.good, reading.totals, True, reading.faults.rows, warnings
    )


async def _beside(
    ledger: Ledger, binding: Binding, source: Source, settings: LoadSettings, stat: str
) -> ImportReport:
    header = ledger.header
    worth = payable(ledger.totals)
    known = ImportReport(binding.batch_id, header.rows, dict(header.totals), False, 0, (), payable=worth)
    if same_file(binding, stat):
        return known
    identifiers = await edits.identifiers_of(ledger, settings.reference_prefix)
    found = await survey(source, prefix=identifiers.prefix, proofs=identifiers.proofs)
    if found.fingerprint == binding.input_hash:
        return known
    reading = await accepted(found, identifiers, skip=settings.skip_invalid, rejects=settings.rejects)
    again = SourceReader(source, prefix=identifiers.prefix, proofs=identifiers.proofs)
    compared = await edits.compared(ledger, again, identifiers)
    return attrs.evolve(
        known,
        skipped=reading.faults.rows,
        warnings=tuple(reading.warnings),
        differences=tuple(compared.told),
        differing=compared.total,
        input_totals=dict(reading.totals),
    )
