"""Lists that show a payout in a form that cannot be read, or never end."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.scripted import altered


def spoiling(reference: str) -> Callable[[Any, Any], Any]:
    """For `batches.alter`: the payout with this reference has metadata that are no pairs."""

    def spoil(request: Any, answer: Any) -> Any:
        if request.method != "GET":
            return answer
        page = json.loads(answer.body)
        for item in page["data"]:
            if item["reference"] == reference:
                item["metadata"] = ["no", "pairs"]
        return altered(answer, body=json.dumps(page).encode())

    return spoil


def crowding() -> Callable[[Any, Any], Any]:
    """For `batches.alter`: every list has more records than a page can have."""

    def crowd(request: Any, answer: Any) -> Any:
        page = json.loads(answer.body)
        return altered(answer, body=json.dumps({**page, "data": [{}] * 1_001}).encode())

    return crowd


def circling() -> Callable[[Any, Any], Any]:
    """For `batches.alter`: every page is the first one, and says that the same one follows it."""
    pages: list[Any] = []

    def circle(request: Any, answer: Any) -> Any:
        if request.method == "GET" and not pages:
            page = json.loads(answer.body)
            page["pagination"] |= {"next_cursor": "again", "has_more_pages": True}
            pages.append(altered(answer, body=json.dumps(page).encode()))
        return pages[0]

    return circle


def silent(pagination: Any) -> Callable[[Any, Any], Any]:
    """For `batches.alter`: every page says this of its place in the list, and nothing else."""

    def silence(request: Any, answer: Any) -> Any:
        if request.method != "GET":
            return answer
        page = {**json.loads(answer.body), "pagination": pagination}
        return altered(answer, body=json.dumps(page).encode())

    return silence


def hiding(number: int | None = None, **shown: Any) -> Callable[[Any, Any], Any]:
    """For `batches.alter`: every payout of the list, or that of one row of `items`, has these fields instead.

    An Ellipsis leaves a field out.
    """

    def hide(request: Any, answer: Any) -> Any:
        if request.method != "GET":
            return answer
        page = json.loads(answer.body)
        for item in page["data"]:
            if number is None or item["description"] == f"row {number}":
                item.update(shown)
                for name in [name for name, value in item.items() if value is ...]:
                    del item[name]
        return altered(answer, body=json.dumps(page).encode())

    return hide


def repeating(number: int, *, later: bool = False, **shown: Any) -> Callable[[Any, Any], Any]:
    """For `batches.alter`: a page with the payout of this row of `items` ends with it again, so changed.

    `later`: the pages after it do.
    """
    kept = list[dict[str, Any]]()

    def repeat(request: Any, answer: Any) -> Any:
        if request.method != "GET":
            return answer
        page = json.loads(answer.body)
        here = [{**it, **shown} for it in page["data"] if it["description"] == f"row {number}"]
        page["data"] += [*kept] if later else here
        kept.extend(here)
        return altered(answer, body=json.dumps(page).encode())

    return repeat
