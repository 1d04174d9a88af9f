"""The journal sorted into activities: one for each thing that happened, with what it caused.

A request is shown with what it caused. Changes without a request (by time, a payer, a button) are shown by
record and moment. A webhook is one activity, however often it was tried.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import chain

import attrs

from .._common.values import Change, Delivery
from .._journal import Item, JournalEntry, LoggedExchange, WebhookTried

Root = Callable[[str], str]
"""From a record's id to the id under which it is shown: an attempt's payment, else itself."""


@attrs.define(eq=False)
class LogActivity:
    """One line of the log; `seq` is the number of its newest entry."""

    seq: int
    at: float
    root: str
    """The record or webhook it is about, or the request."""
    exchange: LoggedExchange | None = None
    changes: list[Change] = attrs.field(factory=list)
    deliveries: list[Delivery] = attrs.field(factory=list)
    tries: list[WebhookTried] = attrs.field(factory=list)


def activities(entries: Sequence[JournalEntry], root: Root) -> list[LogActivity]:
    """Sort entries into activities, newest first."""
    caused = [caused_by(entries, index) for index in range(len(entries))]
    taken = {one.seq for of_request in caused for one in of_request}
    made: list[LogActivity] = []
    webhooks: dict[str, LogActivity] = {}
    before: LogActivity | None = None
    for entry, of_request in zip(entries, caused, strict=True):
        item = entry.item
        if isinstance(item, LoggedExchange):
            before = LogActivity(entry.seq, item.log.at, item.log.request_id, item)
            for one in of_request:
                _add(before, one.item)
            made.append(before)
        elif isinstance(item, WebhookTried):
            before = _try(entry.seq, item, webhooks, made)
        elif entry.seq not in taken:
            before = _open(made, before, entry.seq, item, root)
            _add(before, item)
    return sorted(made, key=lambda one: one.seq, reverse=True)


def caused_by(entries: Sequence[JournalEntry], index: int) -> list[JournalEntry]:
    """What the request at this index caused, without what had fallen due before it; else nothing."""
    seq, request = entries[index].seq, entries[index].item
    if not isinstance(request, LoggedExchange) or not request.caused:
        return []
    near = (one for one in entries[max(0, index - request.caused) : index] if seq - one.seq <= request.caused)
    return [one for one in near if _was_caused(one.item, request)]


def moment_of(item: Item) -> float:
    """The sandbox's time at which an entry was recorded."""
    if isinstance(item, LoggedExchange):
        return item.log.at
    return item.recorded_at if isinstance(item, WebhookTried) else item.at


def _add(activity: LogActivity, item: Item) -> None:
    if isinstance(item, Change):
        activity.changes.append(item)
    else:
        assert isinstance(item, Delivery)  # requests and tries are activities of their own
        activity.deliveries.append(item)


def _open(
    made: list[LogActivity], before: LogActivity | None, seq: int, item: Change | Delivery, root: Root
) -> LogActivity:
    """The activity of the entry before if `item` belongs to it, else a new one."""
    about = root(item.id if isinstance(item, Change) else item.record_id)
    # a request's and a webhook's activity is closed: only a record's own has changes and no exchange
    joins = before is not None and before.changes and not before.exchange
    if before is None or not joins or (before.root, before.at) != (about, item.at):
        before = LogActivity(seq, item.at, about)
        made.append(before)
    before.seq = seq
    return before


def _try(
    seq: int, tried: WebhookTried, webhooks: dict[str, LogActivity], made: list[LogActivity]
) -> LogActivity:
    webhook = webhooks.get(tried.webhook_id)
    if webhook is None:
        webhook = webhooks[tried.webhook_id] = LogActivity(seq, tried.recorded_at, tried.record_id)
        made.append(webhook)
    webhook.seq, webhook.at = seq, tried.recorded_at
    webhook.tries.append(tried)
    return webhook


@attrs.frozen(eq=False)
class LogPage:
    """Entries for one page of the log, oldest first, and what is below it."""

    entries: list[JournalEntry]
    before: int
    """The number of the entry after the first one that is on an older page."""
    older: int
    """How many lines there are before it."""


class LogMatches:
    """The entries of the journal, all at first, that a search looks through."""

    def __init__(self, numbers: Sequence[int], items: Sequence[Item], root: Root) -> None:
        self._items, self._numbers, self._root = items, numbers, root
        self._indices: Sequence[int] = range(len(items))

    @property
    def end(self) -> int:
        """The number after the newest item's."""
        return self._numbers[-1] + 1 if self._numbers else 0

    @property
    def found(self) -> list[Item]:
        """The entries."""
        return [self._items[index] for index in self._indices]

    def of(self, fits: Callable[[Item], bool] | None) -> LogMatches:
        """Those among them that fit this, too."""
        if fits is None:
            return self
        return self._at([index for index in self._indices if fits(self._items[index])])

    def by_kind(
        self, kinds_of: Callable[[Item], tuple[str, ...]], kinds: Iterable[str]
    ) -> dict[str, LogMatches]:
        """Those of each kind; an entry may be of several."""
        together: dict[tuple[str, ...], list[int]] = {}
        for index in self._indices:
            of_entry = kinds_of(self._items[index])
            if of_entry in together:
                together[of_entry].append(index)
            else:
                together[of_entry] = [index]
        return {
            kind: self._at(sorted(chain(*(own for of_entry, own in together.items() if kind in of_entry))))
            for kind in kinds
        }

    def count(self) -> int:
        """How many lines they are."""
        if all(isinstance(item, LoggedExchange) for item in self.found):
            return len(self._indices)
        walk, caused, lines = _Walk(self._root), set[int](), 0
        for index in reversed(self._indices):
            item = self._items[index]
            if index not in caused:
                lines += walk.lines(item)
            if isinstance(item, LoggedExchange) and item.caused:
                caused.update(self._caused(index))
        return lines + walk.end()

    def page(self, before: int, lines: int) -> LogPage:
        """So many lines below the number `before`, with what each request caused and all tries of a webhook.

        A webhook is where its newest try is.
        """
        items, end = self._items, bisect_left(self._indices, bisect_left(self._numbers, before))
        walk = _Walk(self._root)
        walk.webhooks.update(filter(None, (_webhook(items[index]) for index in self._indices[end:])))
        on_newer_pages = frozenset(walk.webhooks)
        chosen: set[int] = set()
        for index in reversed(self._indices[:end]):
            item = items[index]
            if index not in chosen and _webhook(item) not in on_newer_pages:
                lines -= walk.lines(item)
                if lines < 0:
                    break
                chosen.add(index)
            chosen.update(self._caused(index))
            end -= 1
        return self._cut(chosen, end, on_newer_pages)

    def _at(self, indices: Sequence[int]) -> LogMatches:
        matches = copy(self)
        matches._indices = indices
        return matches

    def _caused(self, index: int) -> Iterable[int]:
        """The indices of what the request at this index caused; none for anything else."""
        item, numbers = self._items[index], self._numbers
        if not isinstance(item, LoggedExchange) or not item.caused:
            return ()
        first = bisect_left(numbers, numbers[index] - item.caused, max(0, index - item.caused), index)
        return (one for one in range(first, index) if _was_caused(self._items[one], item))

    def _cut(self, chosen: set[int], end: int, on_newer_pages: frozenset[str]) -> LogPage:
        items = self._items
        here = {_webhook(items[index]) for index in chosen} - {None}
        tried = [index for index in self._indices[:end] if isinstance(items[index], WebhookTried)]
        chosen.update(index for index in tried if _webhook(items[index]) in here)
        shown = chosen.union(index for index in tried if _webhook(items[index]) in on_newer_pages)
        older = [index for index in self._indices[:end] if index not in shown]
        entries = [JournalEntry(self._numbers[index], items[index]) for index in sorted(chosen)]
        return LogPage(entries, self._numbers[older[-1]] + 1 if older else 0, self._at(older).count())


@attrs.define(eq=False)
class _Walk:
    """Counts lines from the newest entry to the oldest, as `activities` makes them."""

    root: Root
    webhooks: set[str] = attrs.field(factory=set)
    """Those whose line has begun."""
    _about: tuple[str, float] | None = None
    """The record and moment of the line that may go on."""
    _has_change: bool = False
    _due: int = 0
    """Deliveries below the oldest change so far: they join an older change, else stand alone."""

    def lines(self, item: Item) -> int:
        """How many more lines there are with this entry."""
        about, more = None, 1
        if isinstance(item, WebhookTried):
            more = int(item.webhook_id not in self.webhooks)
            self.webhooks.add(item.webhook_id)
        elif not isinstance(item, LoggedExchange):
            about = (self.root(item.id if isinstance(item, Change) else item.record_id), item.at)
        ended = 0 if about is not None and about == self._about else self.end()
        self._about = about
        return ended + (more if about is None else self._of_record(item))

    def _of_record(self, item: Item) -> int:
        if isinstance(item, Change):
            more = 0 if self._has_change else 1 - self._due
            self._has_change, self._due = True, 0
            return more
        self._due += 1
        return 0 if self._has_change else 1

    def end(self) -> int:
        """How many lines there are besides, once the line that may go on has ended."""
        alone = self._due if self._has_change else 0
        self._about, self._has_change, self._due = None, False, 0
        return alone


def _webhook(item: Item) -> str | None:
    """The webhook that was tried."""
    return item.webhook_id if isinstance(item, WebhookTried) else None


def _was_caused(item: Item, exchange: LoggedExchange) -> bool:
    """True if a request caused one of the entries right before it, which else had fallen due."""
    return isinstance(item, (Change, Delivery)) and item.at == exchange.log.at
