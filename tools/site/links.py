"""Every link of the built site leads to a page and to an anchor of it; no page fetches from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors and links of a page, and those links that a browser follows by itself."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.fetched: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what the tag defines, and where it leads."""
        is_fetched = tag == "link" and dict(attrs).get("rel") not in (
            "canonical",
            "alternate",
            "next",
            "prev",
        )
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src", "srcset") and tag != "base":
                self.links.add(value)
                if name != "href" or is_fetched:
                    self.fetched.add(value)


def read(site: Path) -> dict[Path, Page]:
    """Each page of the site, but for the one that is shown for missing addresses."""
    files = (file for file in site.rglob("*.html") if file.name != "404.html")
    return {file.resolve(): Page(file.read_text(encoding="utf-8")) for file in files}


def broken(site: Path) -> Iterator[str]:
    """Links that lead nowhere, and addresses that a page would fetch from elsewhere."""
    pages = read(site)
    for file, page in sorted(pages.items()):
        where = file.relative_to(site.resolve())
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if parts.netloc and link in page.fetched:
                    yield f"{where}: {link} is fetched from elsewhere"
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{where}: {link} leads nowhere"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{where}: {link} has no such anchor"
