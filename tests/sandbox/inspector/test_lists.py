"""The inspector's lists: filters, pages, and how many there are more."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

import pytest

from payments_async.sandbox import Sandbox
from payments_async.sandbox._inspector.lists import ListFilter, cut, filtered
from tests.sandbox.inspector.test_pages import page, text_of
from tests.sandbox.raw_requests import TRIED, Api

HOOK = {"webhook_url": "http://127.0.0.1:9/hook"}


# --- pages and filters as such --------------------------------------------------------------------


def test_a_page_begins_below_a_name_and_says_how_many_are_left() -> None:
    names = [str(number) for number in range(7)]
    first = cut(names, 3, str)
    assert (first.shown, first.more, first.last) == (["0", "1", "2"], 4, "2")
    second = cut(["new", *names], 3, str, first.last)
    assert (second.shown, second.more, second.last) == (["3", "4", "5"], 1, "5")
    assert cut(names, 3, str, "5") == cut(["6"], 3, str)
    assert cut(names, 3, str, "3").last == ""
    with pytest.raises(LookupError, match="'gone' is not in this list any more"):
        cut(names, 3, str, "gone")


def test_filters_choose_by_value_and_by_text_and_offer_what_there_is() -> None:
    filters = (
        ListFilter[str]("kind", "Kind", lambda one: one[0]),
        ListFilter[str]("text", "Text", str, "a*"),
    )
    every = ["a1", "b1", "a2", "b2"]
    all_of_them = filtered(every, filters, {}, str)
    assert (all_of_them.found, all_of_them.is_filtered) == (every, False)
    assert all_of_them.fields[0].choices == {"a": ["a1", "a2"], "b": ["b1", "b2"]}
    some = filtered(every, filters, {"kind": "a", "text": "*2", "before": "a1"}, str)
    assert (some.found, some.left, some.is_filtered) == (["a2"], ["a2"], True)
    assert some.fields[0].choices == {"a": ["a2"], "b": ["b2"]}, "what the other fields leave"
    some = filtered(every, filters, {"kind": "b", "before": "b1"}, str)
    assert (some.found, some.left) == (["b1", "b2"], ["b2"])
    unknown = filtered(every, filters, {"kind": "c"}, str)
    assert (unknown.found, [*unknown.fields[0].choices]) == ([], ["c", "a", "b"]), (
        "what was asked for is shown"
    )


# --- as pages -------------------------------------------------------------------------------------


def follow(sandbox: Sandbox, path: str, within: str = "") -> list[str]:
    """The pages from `path` on, each linked from the one before it; each says how many there are more."""
    pages, left = [], None
    while True:
        shown = page(sandbox, path)
        pages.append(shown)
        part = shown.partition(within)[2] if within else shown
        link = re.search(r'href="/_sandbox/([^"]*)" rel="next">\w+</a><span>([\d,]+) more', part)
        if link is None:
            return pages
        assert left is None or int(link[2]) < left
        path, left = html.unescape(link[1]), int(link[2])


def found(pages: list[str], pattern: str) -> list[list[str]]:
    return [list(dict.fromkeys(re.findall(pattern, shown))) for shown in pages]


def rows(pages: list[str]) -> list[list[str]]:
    """The ids of the records in each page's table."""
    return found(pages, r'<tr data-id="(\w+)"')


def test_payments_are_paged_and_filtered(sandbox: Sandbox, api: Api) -> None:
    for number in range(27):
        api.checkout(entity_id=f"order-{number}")
    api.post("/payment/intents", TRIED)
    sandbox.advance(5)
    names = [one.id for one in reversed(sandbox.books.payments())]
    assert rows(follow(sandbox, "payments")) == [names[:20], names[20:]]
    assert rows([page(sandbox, "payments?status=completed&channel=api")]) == [names[:1]]
    assert rows([page(sandbox, "payments?name=order-1*")]) == [names[8:18] + names[26:27]]
    none = page(sandbox, "payments?status=failed")
    assert "None of them fits." in text_of(none)
    assert "0 of 28 payments Show all" in text_of(none)
    assert 'href="/_sandbox/payments" aria-current="true"' in none, "the chosen value, whose link drops it"
    assert "not in this list" in text_of(page(sandbox, "payments?before=pi_gone", 404))


def test_payouts_are_paged_and_filtered_and_summed_by_status(sandbox: Sandbox, api: Api) -> None:
    for number in range(45):
        api.payout(reference=f"june-{number}", amount=10.5, metadata={"sandbox_scenario": "manual"})
        api.payout(reference=f"july-{number}", metadata={"sandbox_scenario": "fail:NO_FUNDS immediate"})
    api.payout(reference="dollars", amount=7, currency="USD", metadata={"sandbox_scenario": "manual"})
    shown = follow(sandbox, "payouts?name=june*")
    assert [len(one) for one in rows(shown)] == [25, 20]
    made = [one.id for one in reversed(sandbox.books.payouts()) if (one.reference or "")[:4] == "june"]
    assert [one for some in rows(shown) for one in some] == made
    assert "45 of 91 payouts" in text_of(shown[0])
    assert "20 more payouts" in text_of(shown[0])
    assert 'name="name" value="june*"' in shown[1]
    assert "Back to the first page" in shown[1]
    everything = text_of(page(sandbox, "payouts"))
    assert "Status pending 46 USD 7.00 · XOF 472.5 failed 45 XOF 2,250 Failure NO_FUNDS 45" in everything
    assert "Currency XOF 90 USD 1" in everything
    only = page(sandbox, "payouts?status=failed&currency=XOF&method=mtn_bj&failure=NO_FUNDS")
    assert len(rows([only])[0]) == 25
    assert 'type="hidden" name="failure" value="NO_FUNDS"' in only, "the field to type in keeps the others"
    assert "0 of 91 payouts" in text_of(page(sandbox, "payouts?currency=GHS"))
    api.payout(reference="june-new")
    assert rows([page(sandbox, f"payouts?name=june*&before={made[9]}")]) == [made[10:35]]


def test_a_page_stays_though_the_record_it_begins_below_has_another_status(
    sandbox: Sandbox, api: Api
) -> None:
    for number in range(12):
        api.payout(reference=f"r-{number}", metadata={"sandbox_scenario": "manual"})
    names = [one.id for one in reversed(sandbox.books.payouts())]
    sandbox.settle(names[9])
    assert rows([page(sandbox, f"payouts?status=pending&before={names[9]}")]) == [names[10:]]


def test_a_record_is_named_as_its_program_names_it(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="salary-7", description="June")
    api.payout(description="A bonus")
    api.payout(metadata={"sandbox_scenario": "manual", "order_id": "order-9"})
    unnamed = api.payout().data["id"]
    api.checkout(entity_id="basket-3", description="Two tickets")
    listed = re.findall(r'<th scope="row"><a [^>]*>([^<]+)<', page(sandbox, "payouts"))
    assert listed == [unnamed, "order-9", "A bonus", "salary-7"]
    assert ">basket-3<" in page(sandbox, "payments")


def test_deliveries_are_paged_and_filtered(sandbox: Sandbox, api: Api) -> None:
    for number in range(28):
        api.payout(reference=f"r-{number}", **HOOK, metadata={"sandbox_scenario": "manual"})
    first = sandbox.books.payouts()[0].id
    sandbox.forge(first)
    names = [one.id for one in reversed(sandbox.webhooks)]
    assert rows(follow(sandbox, "webhooks")) == [names[:25], names[25:]]
    assert rows([page(sandbox, f"webhooks?record={first}")]) == [[names[0], names[-1]]]
    assert rows([page(sandbox, "webhooks?event=payout.completed&state=waiting")]) == [names[:1]]
    assert "0 of 29 deliveries" in text_of(page(sandbox, "webhooks?state=delivered"))


def test_messages_rules_windows_and_requests_of_a_key_are_paged(sandbox: Sandbox, api: Api) -> None:
    for _ in range(14):
        api.post("/payment/intents", {**TRIED, "metadata": {"sandbox_scenario": "action:approve_on_phone"}})
    shown = found(follow(sandbox, "phone"), r"/actions/(\w+)/phone")
    assert [len(one) for one in shown] == [12, 2]
    last = shown[0][-1]
    sandbox.settle(last)  # which the second page begins after
    assert found([page(sandbox, f"phone?before={last}")], r"/actions/(\w+)/phone") == shown[1:]
    assert "not in this list" in text_of(page(sandbox, "phone?before=pa_gone", 404))
    for number in range(40):
        sandbox.on("payouts.create", reference=f"r-{number}").respond("reset")
        api.payout(reference="same", idempotency_key="key-00001")
    rules = found(follow(sandbox, "faults"), r"<code>(rule_\d+)</code>")
    assert rules == [[f"rule_{n}" for n in range(1, 33)], [f"rule_{n}" for n in range(33, 41)]]
    same = [one.request_id for one in sandbox.requests if one.idempotency_key][::-1]
    pages = follow(sandbox, f"requests/{same[5]}", within="Same idempotency key")
    group = [one.partition("Same idempotency key")[2] for one in pages]
    assert found(group, r">(req_\w+)</a>") == [same[:30], same[30:]]
    other = Api(sandbox, sandbox.new_key())
    other.payout(idempotency_key="key-00001")
    assert "Same idempotency key" not in page(sandbox, f"requests/{sandbox.requests[-1].request_id}")
    for _ in range(70):
        Api(sandbox, sandbox.new_key()).get("/payouts")
    windows = found(follow(sandbox, "limits"), r'<meter [^>]*aria-label="([^"]*)"')
    assert [len(one) for one in windows][:-1] == [48] * (len(windows) - 1)
    assert len({name for one in windows for name in one}) == sum(map(len, windows)) > 70


def test_of_many_cases_of_one_mistake_the_first_are_named(sandbox: Sandbox, api: Api) -> None:
    for number in range(30):
        api.payout(reference=f"r-{number}", idempotency_key=f"key-{number:05d}", amount=number + 1)
        api.payout(reference=f"r-{number}", idempotency_key=f"key-{number:05d}", amount=number + 2)
    shown = page(sandbox, "advisor")
    assert (
        len(
            re.findall(
                r'href="/_sandbox/requests/req_\d+">req_', shown.partition("and 22 more in the list")[0]
            )
        )
        == 8
    )
    assert shown.count(">Dismiss<") == 1
    assert "Advisor 1 finding" in text_of(shown), "as many as there are mistakes"


def test_no_list_ends_without_saying_how_many_more_there_are(sandbox: Sandbox, api: Api) -> None:
    say: dict[str, Callable[[], object]] = {
        "payments": lambda: api.checkout(),
        "payouts": lambda: api.payout(metadata={"sandbox_scenario": "manual"}),
        "": lambda: api.get("/payouts"),
    }
    for path, happens in say.items():
        for _ in range(50):
            happens()
        assert re.search(r"Older</a><span>\d+ more \w+</span>", page(sandbox, path)), path
