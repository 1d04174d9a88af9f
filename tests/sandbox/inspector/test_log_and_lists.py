"""The log and the lists: newest first, filtered by links, searched by a text, cut into pages."""

from __future__ import annotations

import html
import re

import pytest

from payments_async.sandbox import Sandbox
from tests.sandbox.inspector.test_pages import HOOK, page, text_of
from tests.sandbox.raw_requests import TRIED, Api, Journal


def rows(shown: str) -> list[str]:
    """The lines of a page's log or list, without times and durations."""
    shown = re.sub(
        r'<time.*?</time>|<span class="soft">[\d.,]+ m?s</span>|<li class="day">.*?</li>', "", shown
    )
    found = re.findall(r'(?s)<li(?: class="soft")?>(.*?)</li>', shown.rpartition("</nav>")[2])
    return [" ".join(html.unescape(re.sub(r"<[^>]+>", " ", row)).split()) for row in found]


def log(sandbox: Sandbox, query: str = "") -> list[str]:
    return rows(page(sandbox, query))


@pytest.fixture
def busy(sandbox: Sandbox, api: Api) -> Sandbox:
    """A payout that failed, one that is open, a refused one, a payment with an attempt, and a read."""
    failing = {"sandbox_scenario": "fail:NO_FUNDS after=1s"}
    api.payout(reference="june-1", webhook_url=HOOK, metadata=failing, idempotency_key="key-of-June")
    sandbox.advance(2)
    api.payout(reference="june-2", metadata={"sandbox_scenario": "manual"})
    api.payout(reference="july-1", amount=0)
    api.post(
        "/payment/intents", {**TRIED, "description": "Shoes", "metadata": {"sandbox_scenario": "manual"}}
    )
    api.get("/payouts/po_none")
    return sandbox


REFUSED = "The amount field must be at least 1"


def test_the_log_has_a_line_for_each_thing_newest_first(busy: Sandbox) -> None:
    named = busy.books.payments()[0].reference
    read, intent, attempt, payment, refused, second, made, failed, under_way, first, new = log(busy)
    assert read == "GET /v1/payouts/po_none There is nothing at GET of this address. 404"
    assert intent == f"POST /v1/payment/intents {named} 201"
    assert attempt == f"attempt new → processing {named} processing"
    assert payment == f"payment new → pending {named} pending"
    assert refused.startswith(f"POST /v1/payouts july-1 amount: {REFUSED}")
    assert refused.endswith(" 422")
    assert second == "POST /v1/payouts june-2 201"
    assert made == "payout new → pending june-2 pending"
    assert failed == "payout processing → failed june-1 NO_FUNDS failed"
    assert under_way == "payout pending → processing june-1 processing"
    assert (first, new) == ("POST /v1/payouts june-1 201", "payout new → pending june-1 pending")


@pytest.mark.parametrize(
    ("query", "count", "first"),
    [
        ("?kind=request", 5, "GET /v1/payouts/po_none"),
        ("?kind=record", 6, "attempt new"),
        ("?kind=webhook", 0, ""),
        ("?kind=failed", 3, "GET /v1/payouts/po_none"),
        ("?kind=nonsense", 11, "GET"),
        ("?find=JUNE-1", 4, "payout processing → failed june-1"),
        ("?find=june-", 6, "POST /v1/payouts june-2"),
        ("?find=july", 1, "POST /v1/payouts july-1"),
        ("?find=key-of-june", 1, "POST /v1/payouts june-1"),
        ("?find=po_none", 1, "GET /v1/payouts/po_none"),
        ("?find=payment/intents", 1, "POST /v1/payment/intents"),
        ("?find=req_00000002", 1, "POST /v1/payouts june-2"),
        ("?find=pi_", 3, "POST /v1/payment/intents"),
        ("?find=june&kind=failed", 1, "payout processing → failed june-1"),
        ("?find=22990000000", 0, ""),
        ("payouts", 2, "june-2 pending XOF 50"),
        ("payouts?status=failed", 1, "june-1 failed XOF 50 mtn_bj •••00 NO_FUNDS"),
        ("payouts?find=June-2", 1, "june-2 pending XOF 50 mtn_bj •••00 complete manual Complete Fail"),
        ("payouts?find=key-of", 1, "june-1"),
        ("payouts?find=june-2&status=failed", 0, ""),
        ("payments", 1, "Shoes pending XOF 50 mtn_bj"),
        ("payments?find=shoes", 1, "Shoes"),
        ("payments?find=pa_", 1, "Shoes"),
        ("payments?status=completed", 0, ""),
        ("webhooks", 2, "june-1 waiting payout.failed"),
        ("webhooks?find=/hook", 2, "june-1"),
        ("webhooks?find=june-2", 0, ""),
    ],
)
def test_what_a_filter_and_a_search_find(busy: Sandbox, query: str, count: int, first: str) -> None:
    shown = page(busy, query)
    found = rows(shown)
    assert len(found) == count
    assert not found or found[0].startswith(first), found[0]
    assert bool(found) != bool(re.search("Nothing matches|None of them fits", shown))


def test_a_payout_is_shown_and_found_by_the_key_of_its_row(busy: Sandbox) -> None:
    keys = {"june-1": "Ada <b>", "july-1": "Grace"}
    plain = [page(busy, path) for path in ("?find=ada", "payouts?find=ada", "webhooks?find=ada")]
    assert not any(map(rows, plain))
    busy.row_key = keys.get
    payout = busy.books.payouts(reference="june-1")[0].id
    assert ["Ada <b>" in row for row in log(busy, "?find=Ada <")] == [True] * 4
    assert log(busy, "?find=grace")[0].startswith("POST /v1/payouts Grace amount: ")
    assert "june-1" not in " ".join(log(busy))
    (listed,) = rows(page(busy, "payouts?find=ada"))
    assert listed.startswith("Ada <b> failed XOF 50 mtn_bj •••00 june-1 NO_FUNDS")
    for find in ("ada", "june-1"):
        assert [row[:7] for row in rows(page(busy, f"webhooks?find={find}"))] == ["Ada <b>"] * 2
    shown = text_of(page(busy, f"payouts/{payout}"))
    assert "Payout Ada <b>" in shown
    assert "Row Ada <b> Reference june-1" in shown
    assert f"About Ada <b> {payout} To" in text_of(page(busy, "webhooks/wh_00000001"))
    others = (page(busy, "api/payouts"), page(busy, "api/requests"), repr(busy))
    assert not any("Ada" in text or "Grace" in text for text in others), "a key may be a person's name"


def test_a_payments_failure_has_its_reason_at_the_attempt(sandbox: Sandbox, api: Api) -> None:
    api.intent(scenario="fail:NO_FUNDS immediate")
    failed = log(sandbox, "?kind=failed")
    assert sorted((line.split()[0], "NO_FUNDS" in line) for line in failed) == [
        ("attempt", True),
        ("payment", False),
    ]


def test_a_creation_that_is_no_json_has_its_line(sandbox: Sandbox, api: Api) -> None:
    api.post("/payouts", b"{")
    assert log(sandbox)[0].startswith("POST /v1/payouts")


def test_a_filter_is_a_link_that_keeps_the_search_and_says_how_many_there_are(busy: Sandbox) -> None:
    shown = page(busy, "payouts?find=june")
    assert 'href="/_sandbox/payouts?find=june&amp;status=failed"' in shown
    assert "all pending 1 failed 1" in text_of(shown)
    assert 'name="status" value="failed"' in page(busy, "payouts?status=failed")
    assert 'aria-current="true">refused <' in page(busy, "payouts?status=refused"), "what was asked for"
    assert 'href="/_sandbox/?find=june&amp;kind=failed"' in page(busy, "?find=june")


def test_pages_show_each_line_once_while_more_are_added(sandbox: Sandbox, api: Api) -> None:
    for number in range(60):
        api.payout(reference=f"r-{number:02}")
    for begin in ("", "payouts"):
        path, names = begin, list[str]()
        while path is not None:
            shown = page(sandbox, path)
            names += [name for row in rows(shown) for name in re.findall(r"r-\d\d", row)[:1]]
            assert (">Newest</a>" in shown) == (path != begin)
            older = re.search(r'href="/_sandbox/([^"]+)">Older<', shown)
            path = html.unescape(older[1]) if older else None
            api.payout(reference=f"new-{len(names)}")
        newest_first = [f"r-{number:02}" for number in range(59, -1, -1)]
        assert names == (newest_first if begin else [name for name in newest_first for _ in range(2)])


def test_a_page_stays_though_the_record_it_begins_below_has_another_status(
    sandbox: Sandbox, api: Api
) -> None:
    for number in range(40):
        api.payout(reference=f"r-{number}", metadata={"sandbox_scenario": "manual"})
    older = re.search(r'href="/_sandbox/([^"]+)">Older<', page(sandbox, "payouts?status=pending"))
    assert older is not None
    before = re.findall(r"po_\w+", older[1])[0]
    sandbox.settle(before)
    assert [row.split()[0] for row in rows(page(sandbox, html.unescape(older[1])))] == [
        f"r-{number}" for number in range(14, -1, -1)
    ]


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"description": "Order 7", "metadata": {"order": "8"}}, "Order 7"),
        ({"metadata": {"my_Order_id": "8"}}, "8"),
        ({"metadata": {"order": ""}}, "PAY-"),
        ({}, "PAY-"),
    ],
)
def test_a_payment_is_named_as_its_program_names_it(
    sandbox: Sandbox, api: Api, fields: dict[str, object], name: str
) -> None:
    api.checkout(**fields)
    assert rows(page(sandbox, "payments"))[0].startswith(name)


def test_what_is_gone_is_counted_and_a_record_that_is_gone_goes_by_its_id(sandbox: Sandbox, api: Api) -> None:
    sandbox._journal = Journal(entries=5)
    assert "are gone" not in page(sandbox)
    for number in range(20):
        api.payout(reference=f"r-{number}")
    assert "35 earlier entries are gone" in text_of(page(sandbox))
    assert "all pending 20" in text_of(page(sandbox, "payouts")), "of the records, not of the log"
    payout = sandbox.books.payouts()[0].id
    assert "what came first may be missing" in page(sandbox, f"payouts/{payout}")
    entries = sandbox.entries()
    sandbox.reset()
    sandbox.journal.add(entries[1].item)
    assert "po_" in log(sandbox)[0]
    assert log(sandbox, "?find=po_") == log(sandbox)
