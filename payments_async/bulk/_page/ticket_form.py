"""A private file that opens the page, where the machine does not say which user a connection is from.

Every user of the machine can read a browser's command line. So that names this file; the ticket is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from ..._files import write_text

OPEN: Final = "/open"
"""The path that takes the form."""
_FORM: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Payouts</title>
<form method="post" action="{action}"><input type="hidden" name="ticket" value="{ticket}">
<button>Open the page of the batch</button></form><script>document.forms[0].submit()</script>
"""


def ticket_of(link: str) -> str:
    """The ticket in a link to the page."""
    return link.partition("?token=")[2]


@contextmanager
def ticket_form(link: str) -> Iterator[str]:
    """A file whose form posts the ticket of a link (mode 0600, in a folder of ours), as an address.

    The file is there until the block ends. Raises OSError where it cannot be written.
    """
    form = _FORM.format(action=f"http://{urlsplit(link).netloc}{OPEN}", ticket=ticket_of(link))
    with TemporaryDirectory(prefix="payments-page-", ignore_cleanup_errors=True) as folder:
        file = Path(folder) / "open.html"
        write_text(file, form, durable=False)
        yield file.as_uri()
