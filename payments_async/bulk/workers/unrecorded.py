"""Files for outcomes that the database could not take: `june-1f2e3d4c-1.unrecorded.json`."""

from __future__ import annotations

from pathlib import Path

from .. import _files
from ..engine.recorder import OutcomesUnrecorded
from ..ledger_errors import LedgerError


class OutcomesFolder:
    """The folder for the outcomes that one worker could not record."""

    def __init__(self, folder: Path | None, worker: str) -> None:
        """`folder`: None to write nothing, and raise them at the end."""
        self._folder, self._worker = folder, worker
        self.written: list[str] = []
        """The paths of the files."""
        self._lost: OutcomesUnrecorded | None = None

    def write(self, batch_id: str, error: OutcomesUnrecorded) -> None:
        """Write outcomes of a batch to a file of their own, readable by this user only."""
        name = f"{_files.file_name(batch_id)}-{self._worker}-{len(self.written) + 1}.unrecorded.json"
        try:
            if self._folder is None:
                raise OSError
            _files.write_text(self._folder / name, error.to_json())
        except OSError:
            self._lose(error)
        else:
            self.written.append(str(self._folder / name))

    def _lose(self, error: OutcomesUnrecorded) -> None:
        cause, before = error.__cause__, () if self._lost is None else self._lost.outcomes
        assert isinstance(cause, LedgerError)
        self._lost = OutcomesUnrecorded(cause, [*before, *error.outcomes])

    def require_written(self) -> None:
        """Raise OutcomesUnrecorded with all that were not written."""
        if self._lost is not None:
            raise self._lost
