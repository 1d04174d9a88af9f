"""The pictures of README.md and docs/: `nox -s pictures` makes all of them anew, from what runs.

    python -m tools.pictures [NAME ...]    # docs/images/NAME.webp; all of them unless named

Each function below is one picture: it brings something about in a sandbox, and gives what was seen. Several
frames make a moving picture, and the second one is also kept still, for readers who asked for less motion.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Final

from PIL import Image

from payments_async.sandbox import Sandbox
from payments_sync import Checkout, Instrument, Payments

if TYPE_CHECKING:
    from playwright.sync_api import Page

OUTPUT: Final = Path(__file__).resolve().parents[1] / "docs" / "images"
SECONDS: Final = 2.4
"""How long a frame is shown; the last one twice as long."""
TERMINAL: Final = """<style>
body { margin: 0; background: #14161a; }
pre { width: 890px; margin: 0; padding: 22px 26px; min-height: %dpx; background: #14161a; color: #d7dae0; }
pre { font: 15px/1.45 monospace; white-space: pre-wrap; }
b { color: #fff; }
i { color: #7ee2a8; font-style: normal; }
u { color: #ff9b9b; text-decoration: none; }
</style><pre>%s</pre>"""


def checkout(page: Page) -> Iterator[bytes]:
    """A payer pays by phone, which stands beside the page."""
    with _sandboxed() as (_, client):
        page.goto(f"{_ordered(client).url}?country=GH")
        yield page.screenshot()
        page.get_by_text("Mobile money", exact=True).click()
        page.get_by_label("Phone number").filter(visible=True).first.fill("+233 20 000 0001")
        page.get_by_role("button", name=re.compile("^Pay ")).first.click()
        phone = page.frame_locator("aside.beside iframe")
        approve = phone.get_by_role("button", name="Approve")
        approve.wait_for()
        yield page.screenshot()
        approve.click()
        page.get_by_role("heading", level=1, name="Payment complete").wait_for()
        yield page.screenshot()


def timeline(page: Page) -> Iterator[bytes]:
    """The inspector's page of a payout whose first answer was lost."""
    with _sandboxed() as (sandbox, client):
        sandbox.on("payouts.create").respond("lost_response", times=1)
        wallet = Instrument.phone("+233200000001", "GH")
        payout = client.payouts.create(
            amount="10.10",
            currency="GHS",
            method="mobile_money",
            instrument=wallet,
            reference="salary-ada-june",
        )
        client.payouts.wait(payout, deadline=60)
        yield _timeline(page, f"{sandbox.origin}/_sandbox/payouts/{payout.id}")


def batch(page: Page) -> Iterator[bytes]:
    """A batch in a terminal: begun, killed, looked at, resumed and certified."""
    with _batch() as shell:
        run = f"{PAYOUTS} run june.csv --ledger june.ledger"
        shell.kill_once_paying(run)
        yield shell.shown(page, 620)
        shell.run(f"{PAYOUTS} status june.ledger")
        yield shell.shown(page, 620)
        shell.clear()
        shell.run(run)
        yield shell.shown(page, 620)


def certificate(page: Page) -> Iterator[bytes]:
    """A batch's own page, after its certificate."""
    with _batch() as shell:
        shell.run(f"{PAYOUTS} run june.csv --ledger june.ledger --batch-id salaries-june --wait-final 2m")
        with shell.started(f"{PAYOUTS} watch june.ledger") as watching:
            assert watching.stdout is not None
            said = iter(watching.stdout.readline, "")
            page.goto(next(found[0] for line in said if (found := re.search(r"http://127\S+", line))))
            page.locator("h1").first.wait_for()
            yield page.screenshot(full_page=True)


PICTURES: Final[Sequence[Callable[[Page], Iterator[bytes]]]] = (checkout, timeline, batch, certificate)
PAYOUTS: Final = "payments payouts"


class Shell:
    """Commands, and what they print."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        beside = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
        self._folder = folder
        self._environment = {**environment, "PATH": beside, "COLUMNS": "96"}
        self._lines: list[str] = []

    def run(self, command: str) -> None:
        """Run a command to its end."""
        with self.started(command) as process:
            output, _ = process.communicate()
        self._lines += [f"$ {command}", *output.rstrip().splitlines(), ""]

    def kill_once_paying(self, command: str) -> None:
        """Run a command, and kill it as soon as it has paid some rows."""
        with self.started(command) as process:
            while "Not started" not in (state := self._status()) or re.search(r"Not started +5,000", state):
                if process.poll() is not None:
                    raise RuntimeError(f"{command} ended before it was killed")
                time.sleep(0.05)
            os.kill(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
        said = output.rstrip().splitlines()
        self._lines += [f"$ {command}", *said, "Killed    # kill -9, while it pays", ""]

    def _status(self) -> str:
        with self.started(f"{PAYOUTS} status june.ledger") as process:
            return process.communicate()[0]

    @contextmanager
    def started(self, command: str) -> Iterator[subprocess.Popen[str]]:
        """Context of a running command, which ends with it."""
        process = subprocess.Popen(
            command.split(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env=self._environment,
        )
        try:
            yield process
        finally:
            process.terminate()
            process.wait()

    def clear(self) -> None:
        """Begin with an empty screen."""
        self._lines = []

    def shown(self, page: Page, height: int = 0) -> bytes:
        """Look at the terminal, of at least so many pixels."""
        page.set_content(TERMINAL % (height, "\n".join(map(_coloured, self._lines))))
        return page.locator("pre").screenshot()


def _coloured(line: str) -> str:
    marks = {"$": "b", "  ✓": "i", "Killed": "u"}
    tag = next((tag for mark, tag in marks.items() if line.startswith(mark)), "span")
    return f"<{tag}>{html.escape(line)}</{tag}>"


@contextmanager
def _sandboxed() -> Iterator[tuple[Sandbox, Payments]]:
    """Context of a sandbox and a client of it."""
    with Sandbox() as sandbox, Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
        yield sandbox, client


@contextmanager
def _batch() -> Iterator[Shell]:
    """Context of a terminal in a folder with a file of 5,000 salaries."""
    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        lines = ["row_key,amount,currency,method,instrument.phone_number,instrument.country"]
        lines += [
            f"emp-{n:04},{10 + n % 90}.{n % 100:02},GHS,mobile_money,+2332{n:08},GH" for n in range(1, 5001)
        ]
        Path(folder, "june.csv").write_text("\n".join(lines), encoding="utf-8")
        reach = {"PAYMENTS_API_KEY": sandbox.api_key, "PAYMENTS_BASE_URL": sandbox.base_url}
        yield Shell(Path(folder), {**os.environ, **reach, "BROWSER": "true"})


def _ordered(client: Payments) -> Checkout:
    return client.checkouts.create(
        amount="50.00",
        currency="GHS",
        description="Order 1001",
        return_url="https://shop.test/orders/1001",
        metadata={"order": "1001"},
        appearance={"brand": "Ada's shop"},
    )


def _timeline(page: Page, address: str) -> bytes:
    page.goto(address)
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(700)  # a webhook may be on its way
    return page.screenshot(full_page=True)


def save(name: str, frames: Sequence[bytes]) -> None:
    """Write a picture; of a moving one also its second frame."""
    images = [Image.open(BytesIO(frame)).convert("RGB") for frame in frames]
    if images[1:]:
        first, *more = images
        shown = [int(1000 * SECONDS)] * len(more) + [int(2000 * SECONDS)]
        path = OUTPUT / f"{name}.webp"
        first.save(path, quality=80, method=6, save_all=True, append_images=more, duration=shown, loop=0)
        images, name = more, f"{name}-still"
    images[0].save(OUTPUT / f"{name}.webp", quality=80, method=6)


def main(names: Sequence[str]) -> None:
    """Make those that are named, or all."""
    from playwright.sync_api import sync_playwright

    warnings.simplefilter("ignore", RuntimeWarning)  # playwright runs a loop in the thread of our calls
    for picture in PICTURES:
        if names and picture.__name__ not in names:
            continue
        with sync_playwright() as driver:
            browser = driver.chromium.launch(
                executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"),
                args=["--no-sandbox", "--disable-gpu"],
            )
            page = browser.new_page(
                viewport={"width": 1280, "height": 720}, reduced_motion="reduce", locale="en-GB"
            )
            save(picture.__name__, [*picture(page)])
            browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
