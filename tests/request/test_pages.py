"""Lists: what is asked of them, and where a reading of one stands (gaps A, B, C, D)."""

from __future__ import annotations

import pytest

from payments_async import _assumptions
from payments_async._request.pages import ListPosition
from payments_async.errors import SearchIncomplete
from payments_async.models import Page, Pagination, Payout
from payments_async.models.lists import Unread


def page(cursor: str | None = None, *, more: bool | None = None, unread: int = 0) -> Page[Payout]:
    """A page with a record, and what it says of what follows."""
    left_out = tuple(Unread(index, "why") for index in range(unread))
    return Page((Payout(id="po_1"),), Pagination(next_cursor=cursor, has_more_pages=more), unread=left_out)


def read(*read: Page[Payout], start: str | None = None) -> ListPosition:
    position = ListPosition("payouts.find", start)
    for each in read:
        position.advance(each)
    return position


def test_a_position_counts_pages_and_records_that_could_not_be_read() -> None:
    position = read(page("c1", unread=2), page("c2"), page(more=False, unread=1))
    assert (position.pages, position.unread, position.cursor, position.is_over) == (3, 3, None, True)


REPEATED = "the service gave the same cursor twice"


@pytest.mark.parametrize(
    ("position", "problem"),
    [
        (read(), None),
        (read(start="c0"), None),
        (read(page("c1")), None),
        (read(page("c1"), page(more=False)), None),
        (read(page()), _assumptions.NO_END),
        (read(page(more=True), start="c0"), _assumptions.NO_END),
        (read(page("c1"), page("c1")), REPEATED),
        (read(page("c1"), page("c2"), page("c1")), REPEATED),
        (read(page("c0"), start="c0"), REPEATED),
    ],
)
def test_a_position_knows_why_no_page_follows(position: ListPosition, problem: str | None) -> None:
    assert position.problem == problem
    if problem is None:
        position.check()
        return
    with pytest.raises(
        SearchIncomplete, match=f"payouts.find: the list cannot be .* end: {problem}"
    ) as caught:
        position.check()
    assert (caught.value.pages, caught.value.cursor) == (position.pages, None)
    assert caught.value.operation == "payouts.find"
