"""What may travel through an engine: names that are no account, and the day of a schedule in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from importlib.metadata import version
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from ...params import Money
from .. import _options
from ..errors import BulkError
from ..steps._planning import confirmed_total

_ACCOUNT: Final = re.compile(r"\+\d{6}|\d{9}|(?<![A-Za-z0-9])[A-Z]{2}\d{2}[A-Z0-9]{11}")
"""A phone number, a long number, an IBAN."""


def require_names(batch_id: object, *files: object) -> None:
    """Raise BulkError for names of a batch or of files that no engine should store and show."""
    if batch_id is None:
        raise BulkError("batch_id must be given")
    _options.require_batch_id(batch_id)
    for what, name in (("batch_id", batch_id), *(("the file's name", file) for file in files)):
        if _ACCOUNT.search(str(name).replace(" ", "")):
            raise BulkError(
                f"{what} looks like an account, and engines store and show it: write a date as 2026-06-30, "
                "and leave out numbers of 9 digits and more"
            )


def total_text(total: Mapping[str, Money] | None) -> dict[str, str] | None:
    """A confirmed total as an engine stores it, amounts as text. Raises BulkError unless it is exact."""
    amounts = confirmed_total(total, None)
    return None if amounts is None else {currency: str(amount) for currency, amount in amounts.items()}


def plan_arguments(
    file: str,
    batch_id: str,
    *,
    confirm_total: Mapping[str, Money] | None = None,
    max_amount: Money | None = None,
    max_rows: int | None = None,
    max_failure_rate: float | None = None,
    **others: Any,
) -> dict[str, Any]:
    """The arguments of `Steps.plan` as JSON values, amounts as text. Raises BulkError."""
    require_names(batch_id, file, others.get("confirm_from") or "")
    _options.stop_rules(max_amount, max_rows, max_failure_rate)
    given = {
        "file": file,
        "batch_id": batch_id,
        "confirm_total": total_text(confirm_total),
        "max_amount": None if max_amount is None else str(max_amount),
        "max_rows": max_rows,
        "max_failure_rate": max_failure_rate,
        **others,
    }
    return {name: value for name, value in given.items() if value is not None and value is not False}


def require_zone(zone: str) -> None:
    """Raise BulkError for a time zone that there is not."""
    try:
        ZoneInfo(zone)
    except (OSError, TypeError, ValueError, KeyError) as error:
        raise BulkError(f"zone must be a time zone, such as Africa/Accra, and not {zone}") from error


def require_page(page: object) -> None:
    """Raise BulkError unless this is the address of a page that an engine may store and show, or None."""
    parts = urlsplit(page) if isinstance(page, str) else None
    if page is not None and (parts is None or parts.scheme not in ("http", "https") or not parts.hostname):
        raise BulkError("page must be an address that begins with https:// or http://")
    if parts is not None and (parts.username or parts.password):
        raise BulkError("page must hold no user and no password: engines store and show it")


def dated(name: str, time: datetime | None, zone: str) -> str:
    """Put the day of a schedule's time, in a zone, in the place of `{date}`. Raises BulkError without a time.

    The worker's clock must not be asked: an attempt after midnight would name another batch.
    """
    if "{date}" not in name:
        return name
    if time is None:
        raise BulkError("{date} is the day of a schedule's time, and no schedule has started this")
    return name.replace("{date}", time.astimezone(ZoneInfo(zone)).date().isoformat())


def require_version(library: str, lowest: tuple[int, ...], below: tuple[int, ...]) -> None:
    """Raise BulkError for a release of an engine's library that this package was not tested with."""
    found = version(library)
    numbers = tuple(int(number) for number in re.findall(r"\d+", found)[:3])
    if not lowest <= numbers < below:
        first, end = (".".join(map(str, numbers)) for numbers in (lowest, below))
        raise BulkError(f"{library} {found} was not tested: install {library}>={first},<{end}")
