"""Loads an input into the ledger: reads it once to check it and once to import it.

Refuses an input that another ledger in the same folder has: its rows could be paid twice, under other
references.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import aclosing
from difflib import get_close_matches
from typing import Any, Final
from unicodedata import normalize

import attrs

from .._files import STATUS_SUFFIX, refuse_ledger_files
from .._options import require_batch_id
from .._report import ImportReport
from .._status_file import StatusFile
from ..errors import BulkError, SourceUnreadable
from ..ledger.ledger import Ledger
from ..ledger_errors import InputPaidElsewhere
from ..protocol.records import Binding, NewRow
from ..protocol.stop_rules import Account
from ..protocol.totals import payable
from ..sources import Item, IterableSource, Source, open_source
from . import edits
from .reader import CHANGED, SourceReader
from .rows import RowIdentifiers
from .survey import Survey, accepted, survey


def ledger_beside(ledger: str, binding: Binding) -> InputPaidElsewhere | None:
    """What another ledger in the folder of `ledger` says of the same input; None when none does.

    Only the status files are read; those that cannot be, or are something else, say nothing. The same
    batch id gives the same references, which the service pays once; another environment pays no money of
    this one's (`""`: any environment).
    """
    for path, said in _status_files_beside(ledger):
        same = said.get("input_hash") == binding.input_hash
        here = not binding.environment or said.get("environment") in (None, binding.environment)
        other = said.get("batch_id")
        if same and here and isinstance(other, str) and other != binding.batch_id:
            name = os.path.basename(path).removesuffix(STATUS_SUFFIX)
            return InputPaidElsewhere(ledger, batch_id=other, ledger=name)
    return None


def _status_files_beside(ledger: str) -> Iterator[tuple[str, dict[str, Any]]]:
    own = StatusFile.of(ledger).path
    try:
        with os.scandir(os.path.dirname(os.path.abspath(ledger))) as entries:
            files = sorted(
                each.path for each in entries if each.is_file() and each.name.endswith(STATUS_SUFFIX)
            )
    except OSError:  # a folder that may not be listed
        return
    for path in files:
        if path != own and (said := StatusFile(path).read()) is not None:
            yield path, said


Input = Source | str | os.PathLike[str] | Iterable[Item] | AsyncIterable[Item]
"""A source, a file's path, or payouts themselves."""

_NO_FILE: Final = "{}"


def _usable_batch_id(_: object, __: object, batch_id: str | None) -> None:
    require_batch_id(batch_id)


@attrs.frozen(kw_only=True)
class LoadSettings:
    """How an input is to be read, and what may be done with it."""

    batch_id: str | None = attrs.field(default=None, validator=_usable_batch_id)
    reference_prefix: str = ""
    proofs: bool = True
    skip_invalid: bool = False
    rejects: str | os.PathLike[str] | None = None
    strict_amounts: bool = False
    accept_edits: bool = False
    pay_again: bool = False

    def named(self, otherwise: str) -> str:
        """The batch's name in composed form (NFC), as row keys have theirs; `otherwise` when it has none."""
        return otherwise if self.batch_id is None else normalize("NFC", self.batch_id)

    def name_beside(self, recorded: str) -> str:
        """The same for a ledger, whose own name stays as it is: an earlier release kept any form."""
        return recorded if self.named(recorded) == normalize("NFC", recorded) else self.named(recorded)


def settings_of(options: Mapping[str, Any]) -> LoadSettings:
    """The settings that options say. Raises TypeError naming one that there is not, and BulkError."""
    known = attrs.fields_dict(LoadSettings)
    for name in options:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(known))}"
            raise TypeError(f"there is no option {name!r} for reading an input; {hint}")
    return LoadSettings(**options)


def source_of(given: Input, *, strict_amounts: bool) -> Source:
    """The source that is meant. Raises SourceUnreadable for an unknown kind of file."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return open_source(given, strict_amounts=strict_amounts)
    return IterableSource(given, strict_amounts=strict_amounts)


def stat_of(source: Source) -> str:
    """By which an unchanged file is known without reading it; JSON text, `{}` for rows that are no file."""
    stat = source.stat()
    return json.dumps({} if stat is None else attrs.asdict(stat), separators=(",", ":"))


def same_file(recorded: Binding, stat: str) -> bool:
    """Whether a file is the one that was read into the ledger, by what can be seen of it."""
    return stat not in (_NO_FILE, "") and stat == recorded.input_stat


def refuse_rejects(target: str | os.PathLike[str] | None, ledger: str, source: Source) -> None:
    """Raise BulkError when rejects written to `target` would replace the ledger or the source's file."""
    if target is None:
        return
    refuse_ledger_files(target, ledger)
    is_file = source.stat() is not None
    if is_file and os.path.realpath(target) == os.path.realpath(source.name):
        raise BulkError(f"{os.fspath(target)}: is the input itself; choose another path for the rejects")


async def load(ledger: Ledger, place: Account, source: Source, settings: LoadSettings) -> ImportReport:
    """Import a source, or see that it is what the ledger was begun with.

    Raises SourceErrors, SourceUnreadable, BatchIdRequired, LedgerMismatch, LedgerDuplicates or another
    LedgerError, and BulkError where the rejects would replace one of the batch's own files.
    """
    refuse_rejects(settings.rejects, ledger.path, source)
    stat = stat_of(source)
    if not ledger.is_empty:
        return await _known(ledger, place, source, settings, stat)
    found, identifiers = await first_survey(source, place, settings)
    binding = Binding(
        identifiers.batch_id, place.environment, place.base_url, place.key, found.fingerprint, stat
    )
    reading = await importable(found, identifiers, settings)
    warnings = [*_paid_again(ledger, binding, settings), *reading.warnings]
    header = await ledger.import_rows(binding, _rows(source, identifiers, found.fingerprint))
    totals, skipped = dict(header.totals), reading.faults.rows
    return ImportReport(identifiers.batch_id, header.rows, totals, True, skipped, tuple(warnings))


async def first_survey(
    source: Source, place: Account, settings: LoadSettings
) -> tuple[Survey, RowIdentifiers]:
    """An input that no ledger has, read once, and how its rows are named.

    Raises SourceUnreadable, and BatchIdRequired for a live key.
    """
    prefix, proofs = settings.reference_prefix, settings.proofs
    name_wanted = must_name(place, settings.batch_id)
    found = await survey(source, prefix=prefix, proofs=proofs, must_name=name_wanted)
    return found, RowIdentifiers(place.environment, settings.named(found.fingerprint), prefix, proofs)


def must_name(place: Account, batch_id: str | None) -> bool:
    """Whether the rows of a new batch need references of their own: nothing else outlives a lost ledger."""
    return place.environment == "live" and batch_id is None


async def importable(found: Survey, identifiers: RowIdentifiers, settings: LoadSettings) -> SourceReader:
    """The reading of an input that can be imported. Raises SourceErrors or SourceUnreadable."""
    reading = await accepted(found, identifiers, skip=settings.skip_invalid, rejects=settings.rejects)
    if not reading.good:
        raise SourceUnreadable(reading.source.name, "has no row that can be paid")
    return reading


def _paid_again(ledger: Ledger, binding: Binding, settings: LoadSettings) -> list[str]:
    """The warning that an input is another batch too. Raises InputPaidElsewhere unless that is wished."""
    elsewhere = ledger_beside(ledger.path, binding)
    if elsewhere is None:
        return []
    if not settings.pay_again:
        raise elsewhere
    return [f"{elsewhere.problem}: it is paid again on purpose"]


def require_place(ledger: Ledger, place: Account, settings: LoadSettings) -> Binding:
    """See that a ledger is of the batch that is meant, and belongs here. Raises LedgerMismatch."""
    recorded = ledger.header.binding
    given = attrs.evolve(
        recorded,
        batch_id=settings.name_beside(recorded.batch_id),
        environment=place.environment,
        base_url=place.base_url,
    )
    ledger.require(given)
    return given


async def _known(
    ledger: Ledger, place: Account, source: Source, settings: LoadSettings, stat: str
) -> ImportReport:
    given = require_place(ledger, place, settings)
    if not same_file(given, stat):
        identifiers = await edits.identifiers_of(ledger, settings.reference_prefix)
        found = await survey(source, prefix=identifiers.prefix, proofs=identifiers.proofs)
        if found.fingerprint != given.input_hash:
            await accepted(found, identifiers, skip=settings.skip_invalid, rejects=settings.rejects)
            edited = attrs.evolve(given, input_hash=found.fingerprint, input_stat=stat)
            return await _edited(ledger, source, settings, identifiers, edited)
    header = ledger.header
    worth = payable(ledger.totals)
    return ImportReport(given.batch_id, header.rows, dict(header.totals), False, 0, (), payable=worth)


async def _edited(
    ledger: Ledger, source: Source, settings: LoadSettings, identifiers: RowIdentifiers, binding: Binding
) -> ImportReport:
    again = _paid_again(ledger, binding, settings) if settings.accept_edits else []
    reading = SourceReader(source, prefix=identifiers.prefix, proofs=identifiers.proofs)
    made = await edits.taken_over(ledger, reading, identifiers, binding, accept=settings.accept_edits)
    header, changed = ledger.header, made.corrected + made.cancelled
    same = [] if changed else ["the input was written anew; its rows are the same as before"]
    return ImportReport(
        binding.batch_id,
        header.rows,
        dict(header.totals),
        False,
        reading.faults.rows,
        (*again, *same, *reading.warnings),
        made.corrected,
        made.cancelled,
        payable=payable(ledger.totals),
    )


async def _rows(source: Source, identifiers: RowIdentifiers, fingerprint: str) -> AsyncIterator[NewRow]:
    """The rows without a fault, of the very input that was read before. Raises SourceUnreadable."""
    reading = SourceReader(source, prefix=identifiers.prefix, proofs=identifiers.proofs)
    async with aclosing(reading.rows()) as rows:
        async for row in rows:
            yield identifiers.new_row(row)
    if reading.fingerprint != fingerprint:
        raise SourceUnreadable(source.name, CHANGED)
