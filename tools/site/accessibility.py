"""axe on the built site, in the machine's own chromium: the structure of every page, the colours of two.

`python -m tools.site.accessibility SITE` looks at everything: each page light and dark, narrow and wide.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from playwright.sync_api import Page

COLOURS: Final = ("color-contrast", "link-in-text-block")
"""Rules about colours take ten times as long as all others, and all pages have one style sheet."""
STRUCTURE: Final = {"rules": {rule: {"enabled": False} for rule in COLOURS}}
COLOURED: Final = (".", "getting-started", "reference/client")
"""Between them they have every kind of text: prose, tables, code, signatures."""
VIEWS: Final[tuple[tuple[Literal["light", "dark"], int], ...]] = (
    *(("light", 390), ("light", 1280)),
    *(("dark", 390), ("dark", 1280)),
)


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and says nothing."""

    def log_message(self, *_: object) -> None:
        """Nobody reads the log."""


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Context of the site's address while it is served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def chromium() -> str | None:
    """Where the browser is: Debian's, or the one that `CHROMIUM` names."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium")


def violations(site: Path, browser: str, *, everything: bool = False) -> Iterator[str]:
    """What axe finds, best practices included: page, view, rule and first element."""
    from playwright.sync_api import sync_playwright

    with served(site) as address, sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=browser, args=["--no-sandbox", "--disable-gpu"])
        page = launched.new_page(reduced_motion="reduce")
        for file in sorted(site.rglob("index.html")):
            name = file.parent.relative_to(site).as_posix()
            page.goto(f"{address}/{name}/")
            whole = everything or name in COLOURED
            for scheme, width in VIEWS if whole else VIEWS[:1]:
                page.emulate_media(color_scheme=scheme)
                page.set_viewport_size({"width": width, "height": 900})
                for found in _found_on(page, {} if whole else STRUCTURE):
                    yield f"{name}, {scheme}, {width} px: {found}"
        launched.close()


def _found_on(page: Page, options: Mapping[str, object]) -> Iterator[str]:
    from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]  # it has none

    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = Axe().run(page, options={"resultTypes": ["violations"], **options})
    for one in found.response["violations"]:
        yield f"{one['id']}, {len(one['nodes'])} times, first {one['nodes'][0]['html'][:200]}"


if __name__ == "__main__":
    wrong = [*violations(Path(sys.argv[1]), chromium() or sys.exit("no chromium"), everything=True)]
    print("\n".join(wrong) or "axe finds nothing")
    sys.exit(bool(wrong))
