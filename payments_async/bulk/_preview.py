"""What an input would come to: every row read and checked, nothing imported, nothing sent."""

from __future__ import annotations

import attrs

from . import _edits
from ._closing import Place
from ._import_report import ImportReport
from ._loading import Wishes, read, require_place, same_file, stat_of
from ._records import Binding
from ._siblings import paid_elsewhere
from ._totals import payable
from .ledger import Ledger
from .sources import Source


async def preview(
    path: str, ledger: Ledger | None, place: Place | None, source: Source, wishes: Wishes
) -> ImportReport:
    """The report that `load` would give for the ledger at `path`; `ledger` is it, when it holds a batch.

    Rows that the ledger has otherwise are told in the report. Raises as `load` does otherwise.
    """
    stat = stat_of(source)
    if ledger is not None:
        recorded = ledger.header.binding
        here = place or Place(recorded.environment, recorded.base_url, recorded.key_fingerprint)
        return await _beside(ledger, require_place(ledger, here, wishes), source, wishes, stat)
    reading = await read(source, wishes)
    batch_id = wishes.named(reading.fingerprint)
    here = place or Place("", "", "")
    binding = Binding(batch_id, here.environment, here.base_url, here.key, reading.fingerprint, stat)
    elsewhere = paid_elsewhere(path, binding)
    told = [] if elsewhere is None else [elsewhere.problem]
    warnings = (*told, *reading.warnings)
    return ImportReport(batch_id, reading.good, reading.totals, True, reading.faults.rows, warnings)


async def _beside(
    ledger: Ledger, binding: Binding, source: Source, wishes: Wishes, stat: str
) -> ImportReport:
    header = ledger.header
    worth = payable(ledger.totals)
    known = ImportReport(binding.batch_id, header.rows, dict(header.totals), False, 0, (), payable=worth)
    if same_file(binding, stat):
        return known
    reading = wishes.reading(source)
    await reading.through()
    if reading.fingerprint == binding.input_hash:
        return known
    if not wishes.skip_invalid and (error := reading.error):
        raise error
    naming = await _edits.naming_of(ledger, wishes.reference_prefix)
    again = attrs.evolve(wishes, proofs=naming.proofs).reading(source, rejects=False)
    found = await _edits.compared(ledger, again, naming)
    return attrs.evolve(
        known,
        skipped=reading.faults.rows,
        warnings=tuple(reading.warnings),
        differences=tuple(found.told),
        differing=found.total,
        input_totals=dict(reading.totals),
    )
