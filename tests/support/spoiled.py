"""Lists that show a payout in a form that cannot be read, or never end, for `alter`; or page by page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from payments_async.bulk._run.service import PayoutList, Service
from payments_async.models import Payout
from tests.support.scripted import altered

Altered = Callable[[Any, Any], Any]
Page = dict[str, Any]


def _each_page(change: Callable[[Page], object]) -> Altered:
    def change_page(request: Any, answer: Any) -> Any:
        if request.method != "GET":
            return answer
        page = json.loads(answer.body)
        change(page)
        return altered(answer, body=json.dumps(page).encode())

    return change_page


def spoiling(reference: str) -> Altered:
    """The payout with this reference has metadata that are no pairs."""

    def spoil(page: Page) -> None:
        for item in page["data"]:
            if item["reference"] == reference:
                item["metadata"] = ["no", "pairs"]

    return _each_page(spoil)


def crowding() -> Altered:
    """Every list has more records than a page can have."""
    return _each_page(lambda page: page.update(data=[{}] * 1_001))


def circling() -> Altered:
    """Every page is the first one, and says that the same one follows it."""
    pages: list[Any] = []

    def circle(request: Any, answer: Any) -> Any:
        if request.method == "GET" and not pages:
            page = json.loads(answer.body)
            page["pagination"] |= {"next_cursor": "again", "has_more_pages": True}
            pages.append(altered(answer, body=json.dumps(page).encode()))
        return pages[0]

    return circle


def silent(pagination: Any) -> Altered:
    """Every page says this of its place in the list, and nothing else."""
    return _each_page(lambda page: page.update(pagination=pagination))


def hiding(number: int | None = None, **shown: Any) -> Altered:
    """Every payout of the list, or that of one row of `items`, has these fields instead.

    An Ellipsis leaves a field out.
    """

    def hide(page: Page) -> None:
        for item in page["data"]:
            if number is None or item["description"] == f"row {number}":
                item.update(shown)
                for name in [name for name, value in item.items() if value is ...]:
                    del item[name]

    return _each_page(hide)


def repeating(number: int, *, later: bool = False, **shown: Any) -> Altered:
    """A page with the payout of this row of `items` ends with it again, so changed.

    `later`: the pages after it do.
    """
    kept: list[Page] = []

    def repeat(page: Page) -> None:
        here = [{**it, **shown} for it in page["data"] if it["description"] == f"row {number}"]
        page["data"] += [*kept] if later else here
        kept.extend(here)

    return _each_page(repeat)


async def listed(service: Service) -> list[Payout]:
    """The list as it is now, newest first."""
    found, walk = list[Payout](), PayoutList(service)
    while not walk.is_over:
        found += await walk.page()
    return found


def one_a_page(patch: pytest.MonkeyPatch, *more: Payout, backwards: bool = False) -> None:
    """The list comes with one payout on each page, then these."""

    class Split(PayoutList):
        pages_left: list[Payout] | None = None

        async def page(self) -> list[Payout]:
            if self.pages_left is None:
                found = await listed(self._service)
                self.pages_left = [*(found[::-1] if backwards else found), *more]
            page = [self.pages_left.pop(0)]
            self.is_over = not self.pages_left
            return page

    patch.setattr("payments_async.bulk._run.listing.PayoutList", Split)
