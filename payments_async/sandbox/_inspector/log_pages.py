"""The pages of the log and of one request."""

from __future__ import annotations

import re
from itertools import islice

from msgspec.structs import replace

from .._common.values import Change
from .._control_api.json_views import exchange_view
from .log import KINDS, RecordNames, is_found, is_of, lines
from .page_request import Context, PageRequest
from .record_pages import payout_timeline

_ROWS = 50
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


def log(page: PageRequest) -> Context:
    """The log, newest first: of one kind, or what fits a search. `try` names the payout of Try it.

    `LookupError` where it is gone.
    """
    tried = page.query.get("try", "")
    sandbox, kind, text = page.sandbox, page.query.get("kind", ""), page.find.lower()
    kind = kind if kind in KINDS else ""
    with sandbox.reading() as world:
        entries = sandbox.journal.since(0)
        names, gone = RecordNames(world, sandbox.row_key), sandbox.journal.gone
    # looked through without the sandbox's lock, since a search of a full journal takes long
    before = int(page.before) if _NUMBER.fullmatch(page.before) else None
    fits = (
        one
        for one in reversed(entries)
        if (before is None or one.seq < before) and is_of(one.item, kind) and is_found(one.item, text, names)
    )
    shown = list(islice(fits, _ROWS + 1))
    return {
        "is_empty": not entries,
        "tried": payout_timeline(page, tried) if tried else None,
        "kinds": KINDS,
        "kind": kind,
        "lines": lines(shown[:_ROWS], names),
        "last": str(shown[_ROWS - 1].seq) if len(shown) > _ROWS else "",
        "gone": gone,
        "rules": sum(not rule.is_over for rule in sandbox.rules),
        "api_key": sandbox.api_key,
    }


def request(page: PageRequest, request_id: str) -> Context:
    """One request, with what it caused; `LookupError`."""
    reveal = page.query.get("reveal") == "1"
    with page.sandbox.reading() as world:
        kept, entries = page.sandbox.journal.with_causes(request_id)
        exchange = replace(kept)  # a copy, since the journal may drop its bodies
        # what had fallen due before a request was recorded with it, and is not its doing
        own = [one for one in entries if isinstance(one.item, Change) and one.item.at == exchange.log.at]
        *caused, line = lines([*own, entries[-1]], RecordNames(world, page.sandbox.row_key))
    return {
        "request": exchange_view(exchange, reveal=reveal),
        "line": line,
        "caused": caused,
        "reveal": reveal,
        "hides": exchange_view(exchange, reveal=True) != exchange_view(exchange, reveal=False),
    }
