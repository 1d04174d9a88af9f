"""The search language: what each term finds, and what is said of one that cannot be read."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlsplit

import attrs
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from payments_async.sandbox import Answer, Change, Delivery, LoggedRequest, Sandbox
from payments_async.sandbox._inspector.activity import LogMatches, activities
from payments_async.sandbox._inspector.filters import got, search_for
from payments_async.sandbox._inspector.search import MOST, TERMS, read_query
from payments_async.sandbox._journal import Item, JournalEntry, LoggedExchange, WebhookTried
from tests.sandbox.inspector.test_log import log
from tests.sandbox.raw_requests import PAYOUT, TRIED, Api

FAULTED = {"slow": "slow:0.8s", "lost": "lost_response", "none": None}


@attrs.frozen
class Known:
    """What is known of the records below."""

    def root(self, record_id: str) -> str:
        return "pi_1" if record_id == "pa_1" else record_id

    def name(self, record_id: str) -> str:
        return {"po_1": "june-1", "pi_1": "PAY-7"}.get(self.root(record_id), record_id)

    def values(self, record_id: str, field: str) -> Sequence[object]:
        if field == "reference":
            return (self.name(record_id),)
        known = {
            "po_1": {"amount": Decimal("1250.75"), "currency": "GHS", "method": "mobile_money"},
            "pi_1": {"amount": Decimal(50), "customer": "ada@example.test"},
        }
        return (known.get(self.root(record_id), {}).get(field),)

    def was_retried(self, exchange: LoggedExchange) -> bool:
        return exchange.log.request_id in ("req_2", "req_3")

    def was_tried(self, record_id: str, event: str) -> bool:
        return (record_id, event) == ("po_1", "payout.created")

    def was_delivered(self, webhook_id: str) -> bool:
        return webhook_id == "wh_1"


def request(name: str, body: bytes = b"", answer: bytes = b"", **facts: Any) -> LoggedExchange:
    usual: dict[str, Any] = {"operation": "payouts.create", "status": 201, "idempotency_key": "Order-7"}
    own = {given: facts.pop(given) for given in ("seconds", "records", "caused") if given in facts}
    usual |= {"replayed": False, "fault": None, "key": "f1a2", "method": "POST", "path": "/v1/payouts"}
    line = LoggedRequest(at=0.0, request_id=name, headers={}, **(usual | facts))
    return LoggedExchange(line, 0.0, body, Answer(line.status, {}, answer), **own)


ITEMS: dict[str, Item] = {
    "paid": request("req_1", b'{"reference":"june-1","amount":1250.75}', seconds=0.02, records=("po_1",)),
    "refused": request("req_2", b'{"reference":"jun\\u0065-2","amount":"9"}', b'"na\\u00efve"', status=422),
    "lost": request("req_3", b"{", status=0, fault="lost_request", seconds=2.0, key=None),
    "slow": request("req_4", b"[]", status=503, fault="http:503", operation="payouts.list"),
    "nowhere": request("req_5", b'{"amount":"NaN"}', status=404, operation=None, idempotency_key=None),
    "nan": request("req_6", b'{"amount":"NaN","reference":7}', idempotency_key="o"),
    "made": Change(0.0, "payout", "po_1", None, "pending"),
    "failed": Change(0.0, "attempt", "pa_1", "processing", "failed"),
    "due": Delivery(0.0, "payout.created", "po_1", "http://127.0.0.1:9/", b"{}"),
    "forged": Delivery(0.0, "payout.failed", "po_2", "http://127.0.0.1:9/", b"{}", forged=True),
    "accepted": WebhookTried(0.0, "wh_1", "po_1", "payout.created", 204, None),
    "earlier": WebhookTried(0.0, "wh_1", "po_1", "payout.created", 500, None),
    "unheard": WebhookTried(0.0, "wh_2", "pi_1", "payment.completed", None, "nothing listens"),
}


def found(text: str) -> list[str]:
    query = read_query(text)
    assert query.faults == ()
    test = query.tester(Known())
    return [name for name, item in ITEMS.items() if test is None or test(item)]


CREATED = ["paid", "refused", "lost", "nan"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", list(ITEMS)),
        ("status:422", ["refused"]),
        ("status:5xx", ["slow", "earlier"]),
        ("STATUS:4XX", ["refused", "nowhere"]),
        ("status:none", ["lost", "unheard"]),
        ("status:failed", ["failed", "forged"]),
        ("503", ["slow"]),
        ("pending", ["made"]),
        ('"pending"', ["made"]),
        ('"503"', ["slow"]),
        ("op:payouts.create", CREATED),
        ("op:payouts.*", [*CREATED[:3], "slow", "nan"]),
        ("ref:june-1", ["paid", "made", "due", "accepted", "earlier"]),
        ("ref:JUNE*", ["paid", "refused", "made", "due", "accepted", "earlier"]),
        ("ref:j*e-2", ["refused"]),
        ("ref:*-*-*", []),
        ("ref:pay-7", ["failed", "unheard"]),
        ("amount:>1,000", ["paid", "made", "due", "accepted", "earlier"]),
        ("amount:<=50", ["refused", "failed", "unheard"]),
        ("amount:9", ["refused"]),
        ("took:>1s", ["lost"]),
        ("took:<=20ms", ["paid"]),
        ("fault:any", ["lost", "slow"]),
        ("fault:http", ["slow"]),
        ("fault:http:503", ["slow"]),
        ("fault:http:500", []),
        ("key:order-7", ["paid", "refused", "lost", "slow"]),
        ("key:f1*", ["paid", "refused", "slow", "nowhere", "nan"]),
        ("id:req_2", ["refused"]),
        ("id:po_1", ["paid", "made", "due", "accepted", "earlier"]),
        ("id:pi_1", ["failed", "unheard"]),
        ("id:wh_2", ["unheard"]),
        ("event:payout.*", ["due", "forged", "accepted", "earlier"]),
        ("event:payment.completed", ["unheard"]),
        ("is:retried", ["refused", "lost"]),
        ("is:replayed", []),
        ("is:failed OR is:record", ["refused", "lost", "slow", "nowhere", "made", "failed", "unheard"]),
        ("422 OR 503 op:payouts.create", ["refused"]),
        ("-is:request OR 404 OR 422 -is:webhook", ["refused", "nowhere", "made", "failed", "due"]),
        ('"OR"', ["paid", "refused", "lost", "slow"]),
        ("currency:ghs", ["paid", "made", "due", "accepted", "earlier"]),
        ("method:mobile*", ["paid", "made", "due", "accepted", "earlier"]),
        ("method:get", []),
        ("customer:ada*", ["failed", "unheard"]),
        ("is:request", ["paid", "refused", "lost", "slow", "nowhere", "nan"]),
        ("is:record", ["made", "failed"]),
        ("is:webhook", ["forged", "accepted", "earlier", "unheard"]),
        ("is:failed", ["refused", "lost", "slow", "nowhere", "failed", "unheard"]),
        ("naïve", ["refused"]),
        ("NOTHING", []),
        ("wh_1", ["accepted", "earlier"]),
        ("is:failed -is:request", ["failed", "unheard"]),
        ("-op:payouts.create is:request 503", ["slow"]),
        ("id:po_1 amount:>1 ref:june* -204", ["paid", "made", "due", "earlier"]),
    ],
)
def test_what_each_term_finds(text: str, names: list[str]) -> None:
    assert found(text) == names


@pytest.mark.parametrize(
    ("status", "fault", "end", "colour", "failed"),
    [
        (201, None, "201", "ok", False),
        (201, "slow:0.8s", "201", "ok", False),
        (422, "slow:0.8s", "422", "wait", True),
        (302, "http:302", "302", "wait", True),
        (503, "http:503", "503", "bad", True),
        (201, "empty", "201", "bad", True),
        (422, "wrong_type", "422", "wait", True),
        (201, "lost_response", "no answer", "wait", True),
        (201, "cut_body", "no answer", "wait", True),
        (0, "hang", "no answer", "wait", True),
        (0, None, "no answer", "wait", True),
    ],
)
def test_a_request_is_what_its_caller_got(
    status: int, fault: str | None, end: str, colour: str, *, failed: bool
) -> None:
    item = request("req_1", status=status, fault=fault)

    def fits(text: str) -> bool:
        test = read_query(text).tester(Known())
        assert test is not None
        return test(item)

    assert got(status, fault) == (end, colour)
    assert fits("is:failed") is failed
    assert fits("status:none") is (end == "no answer")
    assert (fits("201"), fits('"201"')) == (end == "201", end == "201")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("fault:slow*", ["slow"]),
        ("fault:slow:0.*", ["slow"]),
        ("fault:l*", ["lost"]),
        ("fault:slow:0.8s", ["slow"]),  # as the rule that was set says
        ("fault:*8s", ["slow"]),
        ("fault:*", ["slow", "lost"]),
        ("fault:http*", []),
    ],
)
def test_a_fault_is_found_by_a_pattern(text: str, names: list[str]) -> None:
    items = {name: request("req_1", fault=fault) for name, fault in FAULTED.items()}
    query = read_query(text)
    assert query.faults == ()
    test = query.tester(Known())
    assert test is not None
    assert [name for name, item in items.items() if test(item)] == names


def test_a_lost_answer_is_none_on_every_page(sandbox: Sandbox, api: Api) -> None:
    named = {"reference": "r-1", "idempotency_key": "order-00007"}
    api.payout(**named, scenario="lost_response")
    api.payout(**named)
    lost, again = (f"requests/{one.request_id}" for one in sandbox.requests)
    (line,) = log(sandbox, "?find=status:none")
    assert line.endswith("the connection was closed before the answer no answer")
    shown = html.unescape(page(sandbox))
    assert 'find=status%3Anone">none</a>' in shown
    first, second = (sandbox.handle("GET", f"/_sandbox/{one}").body.decode() for one in (lost, again))
    assert "closed before the answer; the service had answered 201</p>" in first
    assert "had answered" not in second
    for at in (first, second):
        assert '<span class="pill wait">no answer</span></span>' in at
        assert '<span class="pill ok">201</span></span>' in at


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fault:slw*", "no such fault (near: slow"),
        ("stat:5xx", "stat:5xx: no such term (near: status); to find this text, put it in quotes."),
        ("http://shop", "http://shop: no such term"),
        ("is:webhook OR", "OR: a term must stand on both sides; to find this text, put it in quotes."),
        ("OR is:webhook", "OR: a term must stand on both sides"),
        ("422 OR OR 503", "OR: a term must stand on both sides"),
        ("status:complete", "status:complete: no such status (near: completed)."),
        ("status:600", "no such status (there are: "),
        ("op:payout.create", "op:payout.create: no such operation (near: payouts.create"),
        ("event:payouts.*", "no such event (near: payout.failed"),
        ("is:webhooks", "no such kind (near: webhook)."),
        ("fault:lost_respons", "near: lost_response"),
        ("amount:much", "not an amount; as in amount:>1000"),
        ("amount:>", "not an amount"),
        ("amount:>inf", "not an amount"),
        ("took:1s", "say longer or shorter than what; as in took:>1s"),
        ("took:>soon", "'soon' is not a duration"),
        ("status:", "status:: the value is missing, as in status:5xx."),
        ("-", "-: the value is missing."),
        ('""', "the value is missing"),
        ('ref:"june', "the quotation mark is not closed."),
        ('"', "the quotation mark is not closed"),
        (r'"june\"', "the quotation mark is not closed"),
        ("x" * 401, "A search has at most 400 characters, not 401."),
    ],
)
def test_what_is_said_of_a_term_that_cannot_be_read(text: str, said: str) -> None:
    (fault,) = read_query(text).faults
    assert said in fault


def test_terms_are_read_one_by_one_and_written_as_they_were() -> None:
    text = 'status:5xx  -ref:"june 7" is:failed "two words" order'
    query = read_query(text)
    assert [(one.name, one.value, one.excludes) for one in query.terms] == [
        ("status", "5xx", False),
        ("ref", "june 7", True),
        ("is", "failed", False),
        ("", "two words", False),
        ("", "order", False),
    ]
    assert query.kinds == ("failed",)
    assert query.without_kinds.text("is:request") == 'status:5xx -ref:"june 7" "two words" order is:request'
    assert len(read_query("a:b c:d fine").faults) == 2


def test_every_example_can_be_read() -> None:
    for name, term in TERMS.items():
        (read,) = read_query(term.example).terms
        assert read.name == name


# --- on the page --------------------------------------------------------------------------------


def page(sandbox: Sandbox, **query: object) -> str:
    asked = "&".join(f"{name}={quote_plus(str(value))}" for name, value in query.items())
    answer = sandbox.handle("GET", f"/_sandbox/?{asked}")
    assert answer.status == 200
    return answer.body.decode()


def tabs(shown: str) -> dict[str, str]:
    found = re.findall(r'<a href="([^"]*)"[^>]*>(\w+)(?: <span class="count">([\d,]+)</span>)?</a>', shown)
    return {
        label: count for _, label, count in found if label in ("Requests", "Records", "Webhooks", "Failed")
    }


def test_a_search_that_cannot_be_read_says_so_under_the_box_and_shows_nothing(
    sandbox: Sandbox, api: Api
) -> None:
    api.payout(reference="r-1")
    shown = page(sandbox, find="stauts:5xx r-1")
    assert "stauts:5xx: no such term (near: status" in shown
    assert 'aria-invalid="true" aria-describedby="find-wrong"' in shown
    assert 'value="stauts:5xx r-1"' in shown
    assert '<ol class="log"' not in shown
    assert "aria-invalid" not in page(sandbox, find="status:5xx")


def test_tabs_are_terms_and_say_how_many_lines_they_have(sandbox: Sandbox, api: Api) -> None:
    payout = api.payout(reference="r-1", webhook_url="http://127.0.0.1:9/hook").data["id"]
    api.payout(reference="r-1")
    sandbox.advance(10)
    for status in (500, 204):
        sandbox.journal.add_try(WebhookTried(20.0, "wh_1", payout, "payout.created", status, None))
    shown = page(sandbox)
    assert tabs(shown) == {"Requests": "2", "Records": "3", "Webhooks": "2", "Failed": "1"}
    for term, label in (("request", "Requests"), ("record", "Records"), ("failed", "Failed")):
        assert len(log(sandbox, f"?find=is:{term}")) == int(tabs(shown)[label])
    assert len(log(sandbox, "?find=is:webhook")) == 2
    shown = page(sandbox, find="r-1 is:failed")
    assert 'find=r-1+is%3Arequest">Requests' in shown
    assert 'find=r-1+is%3Afailed" aria-current="true">Failed' in shown
    assert 'find=r-1">All' in shown
    assert log(sandbox, "?find=is:request+is:failed") == log(sandbox, "?find=is:failed")
    assert log(sandbox, "?find=is:record+is:failed") == []


def test_a_tab_counts_what_it_shows(sandbox: Sandbox, api: Api) -> None:
    """Deliveries of one moment were counted as one line, a failure apart from the request that caused it."""
    hook = {"webhook_url": "http://127.0.0.1:9/hook"}
    payout = api.payout(**hook).data["id"]
    for _ in range(3):
        sandbox.forge(payout)
    sandbox.settle(payout)
    sandbox.forge(payout)
    api.post("/payment/intents", {**TRIED, **hook, "metadata": {"sandbox_scenario": "complete after=1s"}})
    sandbox.advance(1)
    api.payout(scenario="lost_response", metadata={"sandbox_scenario": "fail:NO_FUNDS immediate"})
    shown = page(sandbox)
    for term, label in (("request", "Requests"), ("record", "Records"), ("webhook", "Webhooks")):
        assert len(log(sandbox, f"?find=is:{term}")) == int(tabs(shown)[label]), label
    assert len(log(sandbox, "?find=is:failed")) == int(tabs(shown)["Failed"]) == 1
    for _ in range(100):
        sandbox.forge(payout)
    assert len(log(sandbox, "?find=is:webhook")) == len(log(sandbox)) == 24, "however many are due at once"
    assert sum(map(len, walk(sandbox, "is:webhook"))) == int(tabs(page(sandbox))["Webhooks"])


_KINDS: dict[str, Callable[[str, float], Item]] = {
    "change": lambda name, at: Change(at, "payout", name, "pending", "processing"),
    "due": lambda name, at: Delivery(at, "payout.created", name, "http://127.0.0.1:9/", b"{}"),
    "tried": lambda name, at: WebhookTried(at, f"wh_{name}", name, "payout.created", 204, None),
    "request": lambda name, at: request(name),
    "cause": lambda name, at: request(name, caused=1),
}


@given(
    st.lists(st.tuples(st.sampled_from(sorted(_KINDS)), st.sampled_from("ab"), st.sampled_from([0.0, 1.0])))
)
def test_lines_are_counted_as_they_are_made(kinds: list[tuple[str, str, float]]) -> None:
    items = [_KINDS[kind](name, at) for kind, name, at in kinds]  # a request causes the entry before it
    entries = [JournalEntry(seq, item) for seq, item in enumerate(items, 1)]
    matches = LogMatches(range(1, len(items) + 1), items, str)
    assert matches.count() == len(activities(entries, str))
    pages, before = 0, len(items) + 1
    seen: list[int] = []
    while before and pages <= len(items):
        found = matches.page(before, 2)
        seen += [entry.seq for entry in found.entries]
        pages, before = pages + 1, found.before
    assert sorted(seen) == [entry.seq for entry in entries]


def test_the_terms_are_explained_with_the_values_that_there_are(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="r-1", scenario="http:503")
    api.get("/nowhere")
    shown = html.unescape(page(sandbox, find="r-1"))
    for term in TERMS:
        assert f">{TERMS[term].example}</a>" in shown
    for value in ("status:503", "status:404", "op:payouts.create", "fault:http:503", "is:failed"):
        assert f'find=r-1+{quote_plus(value)}">{value.partition(":")[2]}</a>' in shown


def test_of_very_many_values_some_are_offered(sandbox: Sandbox, api: Api) -> None:
    for status in range(500, 530):
        api.payout(scenario=f"http:{status}")
    offered = re.findall(r'find=(status|fault)%3A(?:\d+|http%3A\d+)"', page(sandbox))
    assert (offered.count("status"), offered.count("fault")) == (12, 12)


def test_an_amount_is_looked_for_in_records_and_in_what_was_asked_for(sandbox: Sandbox, api: Api) -> None:
    api.payout(reference="large", amount=1250)
    api.payout(reference="small", amount=7)
    api.payout(reference="refused", amount=1250, currency="X")
    sandbox.advance(2)
    found = log(sandbox, "?find=amount:%3E1,000")
    assert [re.sub(r" payout .*| processing.*|currency.*", "", line) for line in found] == [
        "payout large pending →",
        "POST /v1/payouts refused ",
        "POST /v1/payouts large",
    ]
    sandbox.journal.add(WebhookTried(1.0, "wh_1", "po_gone", "payout.created", 204, None))
    assert len(log(sandbox, "?find=amount:%3E1,000")) == 3


def test_records_are_found_by_their_currency_customer_and_method(sandbox: Sandbox, api: Api) -> None:
    ada = {"email": "ada@example.test", "first_name": "Ada"}
    api.payout(reference="r-1", customer=ada, idempotency_key="order-00001")
    api.payout(reference="r-1", customer=ada, idempotency_key="order-00001")
    api.payout(reference="r-2", amount=0, currency="GHS", customer=ada)
    api.post("/payment/intents", {**TRIED, "customer": ada})
    customer = sandbox._core.world.tenants[sandbox.api_key].payouts[0].customer_id
    method = sandbox._core.world.tenants[sandbox.api_key].payments[0].attempts[0].method
    sandbox.journal.add(WebhookTried(1.0, "wh_1", "po_gone", "payout.created", 204, None))
    for find, count in (
        ("customer:ada@*", 4),
        ("customer:Ada", 4),
        (f"customer:{customer} is:request", 2),
        ("currency:GHS", 1),
        (f"currency:{PAYOUT['currency']} is:request", 3),
        (f"method:{method} op:payment_intents.create", 1),
        ("method:post", 4),
        ("is:retried", 2),
        ("is:replayed", 1),
        ("-is:retried is:request", 2),
    ):
        assert len(log(sandbox, f"?find={quote_plus(find)}")) == count, find


# --- older --------------------------------------------------------------------------------------


def walk(sandbox: Sandbox, find: str = "") -> list[list[str]]:
    """The lines of each page, from link to link; each says how many entries are left."""
    pages, query, left = [], f"?find={quote_plus(find)}", None
    while True:
        shown = html.unescape(sandbox.handle("GET", f"/_sandbox/{query}").body.decode())
        pages.append(log(sandbox, query))
        link = re.search(r'<a href="/_sandbox/(\?[^"]*)" rel="next">Older</a><span>([\d,]+) more', shown)
        if link is None:
            assert " more entr" not in shown
            return pages
        assert left is None or int(link[2].replace(",", "")) < left
        query, left = link[1], int(link[2].replace(",", ""))


def test_older_pages_show_each_line_once_while_entries_are_added(sandbox: Sandbox, api: Api) -> None:
    hooks = {"webhook_url": "http://127.0.0.1:9/hook"}
    made = [api.payout(reference=f"r-{number}", **hooks).data["id"] for number in range(30)]
    for number in range(3):
        api.post("/payment/intents", TRIED)
        for place, payout in enumerate(made):
            event = WebhookTried(float(number), f"wh_{place}", payout, "payout.created", 500, None)
            sandbox.journal.add_try(event)
    sandbox.advance(30)
    everything = [line for lines in walk(sandbox) for line in lines]
    assert len(everything) == 30 + 3 + 30 + 30 + 30 + 3
    assert len(set(everything)) == len(everything)
    assert sum("3 tries" in line for line in everything) == 30
    assert len(walk(sandbox, "is:record")) == 4
    shown = html.unescape(page(sandbox))
    link = re.search(r'href="/_sandbox/(\?before=\d+)" rel="next"', shown)
    assert link is not None
    second = log(sandbox, link[1])
    for number in range(50):
        api.get(f"/payouts?page={number}")
    assert log(sandbox, link[1]) == second
    assert "Back to the first page" in sandbox.handle("GET", f"/_sandbox/{link[1]}").body.decode()
    assert log(sandbox, "?before=soon") == log(sandbox)


def test_a_request_on_the_edge_of_a_page_keeps_what_it_caused(sandbox: Sandbox, api: Api) -> None:
    for number in range(25):
        api.payout(reference=f"r-{number}", webhook_url="http://127.0.0.1:9/hook")
    first, second = walk(sandbox)
    assert (len(first), len(second)) == (24, 1)
    for line in (*first, *second):
        assert line.endswith("payout pending webhook payout.created due 201")


@pytest.mark.parametrize("amount", ["٣", "1_0", "1,0,0", "1e3", "-1", "."])
def test_an_amount_is_read_by_the_rules_of_ascii(amount: str) -> None:
    assert read_query(f"amount:{amount}").faults == (
        f"amount:{amount}: not an amount; as in amount:>1000 or amount:25.50.",
    )


def test_a_search_of_too_many_terms_is_not_carried_out() -> None:
    assert read_query("a " * MOST).faults == ()
    assert read_query("a " * 50).faults == (f"A search has at most {MOST} terms, not 50.",)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128))
@example('ab"cd*ef gh<1')
@example("a\\")
@example('\\*"a" "b\\"')
def test_the_link_of_a_key_finds_it_and_no_other(key: str) -> None:
    asked = parse_qs(urlsplit(search_for(key, "key")).query)
    query = read_query(asked["find"][0].strip())
    assert query.faults == ()
    test = query.tester(Known())
    assert test is not None
    assert test(request("req_1", idempotency_key=key))
    others = {f"{key}x", f"x{key}", key.replace("*", "x"), key.replace("\\", ""), key.swapcase()} - {key}
    assert not any(test(request("req_1", idempotency_key=other)) for other in others)


def test_what_is_too_long_for_a_search_has_no_link(sandbox: Sandbox, api: Api) -> None:
    api.payout(idempotency_key="k" * 500, reference="r" * 500)
    name = sandbox.requests[-1].request_id
    shown = sandbox.handle("GET", f"/_sandbox/requests/{name}").body.decode()
    assert f'<span class="mono" title="{"k" * 500}">' in shown
    assert f'<span class="mono" title="{"r" * 500}">' in shown
    assert "?find=" not in shown


def test_a_star_is_looked_for_with_a_stroke_before_it(sandbox: Sandbox, api: Api) -> None:
    for reference in ("a*b", "axb", 'a"b', "a\\b"):
        api.payout(reference=reference)
    for find, count in (
        (r"ref:a\*b", 1),
        ("ref:a*b", 4),
        (r'ref:"a\"b"', 1),
        (r"ref:a\b", 1),
        (r'"a\"b"', 1),
    ):
        assert len(log(sandbox, f"?find={quote_plus(find)}")) == count, find
    star = sandbox.handle("GET", "/_sandbox/payouts?name=a%5C*b").body.decode()
    assert "1 of 4 payouts" in star


def test_a_word_is_found_in_capitals_of_any_script_and_only_where_it_stands(
    sandbox: Sandbox, api: Api
) -> None:
    api.payout(description="École Ünal", reference="r-1")
    body = json.dumps(PAYOUT | {"description": "École"}, ensure_ascii=False).encode()
    api.post("/payouts", body)
    api.post("/payouts", json.dumps(PAYOUT | {"reference": "Été", "amount": 0}, ensure_ascii=False).encode())
    assert len(log(sandbox, "?find=%C3%89cole")) == 2
    assert len(log(sandbox, "?find=%C3%A9cole")) == 2
    assert len(log(sandbox, "?find=ref:%C3%A9t%C3%A9")) == 1
    assert log(sandbox, "?find=none") == [], "a key or fault that a request does not have is no text"
