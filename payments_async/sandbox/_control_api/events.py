"""The journal as a stream of events, from where the reader left off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from .._common.json import encode
from .._common.values import Stream
from .._http.event_stream import News, event_stream
from .arguments import ControlCall
from .json_views import entry_view

if TYPE_CHECKING:
    from .._controls import SandboxControls

AT_ONCE = 200
"""Entries in one batch. Of more than that the newest are sent, and how many were left out."""


def open_stream(sandbox: SandboxControls, call: ControlCall) -> Stream:
    """The journal as Server-Sent Events, from after `Last-Event-ID` (or `?after=`) on, else from now on.

    With `?pulse=1` it only says that something happened: one event for thousands of entries. Its ids count
    the journal's changes, because the end of a request is no entry.
    """
    wanted = call.headers.get("last-event-id") or call.query.get("after", "")
    is_pulse = call.query.get("pulse") == "1"
    last = sandbox.journal.changes if is_pulse else sandbox.journal.last
    after = int(wanted) if wanted.isascii() and wanted.isdigit() and len(wanted) < 16 else last
    reader = _JournalReader(sandbox, after if after <= last else 0)
    return event_stream(sandbox, reader.pulse if is_pulse else reader.entries)


@attrs.define
class _JournalReader:
    """Reads the journal's entries, or for a pulse its changes, `after` a number."""

    sandbox: SandboxControls
    after: int

    def entries(self) -> News:
        """Each new entry as an event, and how many were left out."""
        entries = self.sandbox.entries(self.after, AT_ONCE)
        lines = [_event("entry", entry.seq, entry_view(entry)) for entry in entries]
        if entries:
            missed = entries[0].seq - self.after - 1
            if missed > 0:
                lines.insert(0, _event("gap", self.after + missed, {"missed": missed}))
            self.after = entries[-1].seq
        return News(b"".join(lines), due_in=self._due_in())

    def pulse(self) -> News:
        """One event when there is anything new."""
        due_in, journal = self._due_in(), self.sandbox.journal
        changes = journal.changes
        event = b"" if changes == self.after else _event("pulse", changes, {"last": journal.last})
        self.after = changes
        return News(event, due_in=due_in)

    def _due_in(self) -> float | None:
        with self.sandbox.reading() as world:
            return None if world.next_at is None else world.next_at - world.now


def _event(kind: str, seq: int, value: object) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), encode(value))
