"""Archives a closed batch: writes it to a Parquet file, and checks that file before it is put in place."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import attrs

from ..._files import AtomicFile
from .._files import refuse_existing
from .._ledger.ledger import Ledger
from ..errors import BulkError
from ..ledger_errors import LedgerDamaged, LedgerRefused
from .export import read_certificate, refuse_own_files


@attrs.frozen
class ArchiveReport:
    """The report of an archive."""

    path: str
    rows: int
    entries: int
    """Entries of all chains."""
    head: str
    """The root over all chunks, which `check` and the certificate name too."""
    accounts: bool
    """True if it holds account data."""
    has_certificate: bool


async def archive(
    ledger: Ledger,
    path: str | os.PathLike[str],
    *,
    accounts: bool,
    certificate: str | os.PathLike[str] | None,
    overwrite: bool,
) -> ArchiveReport:
    """Write an archive. Raises BulkError, LedgerError, ImportError or OSError; then no file appears."""
    target = Path(path)
    if target.suffix.lower() != ".parquet":
        raise BulkError(f"{target}: ends in {target.suffix or 'no suffix'}; an archive is a .parquet file")
    from .._ledger.archive.reading import check_archive  # pyarrow is an extra's

    refuse_own_files(ledger, target)
    if not overwrite:
        refuse_existing(target, "name another file, or replace it with --overwrite (overwrite=True)")
    facts = (
        None if certificate is None else read_certificate(Path(certificate), ledger.header.binding.batch_id)
    )
    with AtomicFile(target) as whole:
        has_certificate = await ledger.archive(whole.file, accounts=accounts, certificate=facts)
        whole.file.flush()
        report = await asyncio.to_thread(check_archive, whole.part)
        if report.findings:
            if (await ledger.check()).head != report.head:
                raise LedgerRefused(
                    ledger.path, None, "it was changed while it was archived: archive it again"
                )
            raise LedgerDamaged(ledger.path, report.findings)
    return ArchiveReport(
        str(target), report.rows, report.entries, report.head, accounts, has_certificate=has_certificate
    )
