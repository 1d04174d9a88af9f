"""The site's search finds guides before the members of classes.

The search weighs the words of titles most, and each method and attribute has a title: "refund" found eight of
them before the guide. A method keeps its entry, under the title of its class; attributes become words of the
entry of their class. What both packages have is found once, as the page has a switch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_ATTRIBUTE = re.compile("-attribute<|>property<")
_LEFT_OUT = ("reference/names/", "reference/arguments/")
"""Lists of what other pages describe."""


def rank(site: Path) -> None:
    """Change the index of a built site."""
    file = site / "search.json"
    index = json.loads(file.read_text(encoding="utf-8"))
    index["items"] = [*ranked(index["items"])]
    file.write_text(json.dumps(index, ensure_ascii=False), encoding="utf-8")


def ranked(items: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The entries of an index, in order."""
    described: dict[str, Any] = {}
    for item in items:
        place = item["location"]
        if place.startswith(_LEFT_OUT) or "#payments_sync." in place:
            continue
        if not place.startswith("reference/") or item["level"] == 1:
            yield item
        elif item["level"] == 2:
            described = item
            yield item
        elif _ATTRIBUTE.search(item["title"]):
            described["text"] += f" {item['title'].partition('<')[0]} {item['text']}"
        else:
            yield {**item, "title": described["title"]}
