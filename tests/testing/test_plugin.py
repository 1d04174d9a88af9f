"""The pytest plugin, in small projects of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points

import pytest

import payments_async.client
import payments_async.sandbox.advisor  # noqa: F401 - likewise
import payments_sync.client  # noqa: F401 - likewise

RULES = (
    *("posted_without_key", "retried_with_new_key", "key_reused", "paid_again", "reference_refused"),
    *("collected_twice", "webhook_trusted", "key_in_browser"),
)
HEAD = """
import asyncio, os
from decimal import Decimal
import pytest
from payments_async import AsyncPayments, Instrument, OutcomeUnknown, PaymentsError, WaitTimeout
from payments_sync import Payments
PAYOUT = dict(
    amount="10.10", currency="GHS", method="mobile_money", instrument=Instrument.phone("+233200000001", "GH")
)
"""
OWN = ("-p", "payments_async.testing._plugin", "-p", "no:cacheprovider", "-W", "error")
"""The plugin by its module: by its entry point it would come before coverage."""
ASYNCIO = ("-p", "pytest_asyncio.plugin")

Run = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plugin that is not named: looking for those that are installed takes a second each time."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a project of one module, in this process."""

    def run(tests: str, *options: str, mode: str = "strict") -> pytest.RunResult:
        pytester.makeini(f"[pytest]\nasyncio_mode = {mode}\nasyncio_default_fixture_loop_scope = function\n")
        monkeypatch.setenv("COLUMNS", "300")  # a summary line is cut to the width of the terminal
        pytester.makepyfile(HEAD + tests)
        return pytester.runpytest_inprocess(*OWN, *ASYNCIO, *options)

    return run


ASYNC = """
{mark}
async def test_paid(sandbox, payments_client):
    sandbox.on("payouts.create").respond("lost_response")
    payout = await payments_client.payouts.wait(await payments_client.payouts.create(**PAYOUT, reference="a"))
    assert payout.is_successful
    assert len(sandbox.books.payouts(reference="a")) == 1
"""


@pytest.mark.parametrize(("mode", "mark"), [("strict", "@pytest.mark.asyncio"), ("auto", "")])
def test_the_async_client_works_in_both_modes_of_pytest_asyncio(run: Run, mode: str, mark: str) -> None:
    run(ASYNC.format(mark=mark), mode=mode).assert_outcomes(passed=1)


def test_neither_client_needs_a_plugin_for_coroutines(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        HEAD
        + """
def test_blocking(sandbox, sync_payments_client):
    payout = sync_payments_client.payouts.wait(sync_payments_client.payouts.create(**PAYOUT, reference="a"))
    assert payout.is_successful

def test_awaited(sandbox, payments_client):
    payout = asyncio.run(payments_client.payouts.create(**PAYOUT, reference="a"))
    assert sandbox.books.payouts()[0].id == payout.id
"""
    )
    pytester.runpytest_inprocess(*OWN).assert_outcomes(passed=2)


def test_a_client_that_is_kept_beyond_its_test_pays_nothing_and_no_test_with_it_passes(run: Run) -> None:
    """It would pay into the first test's books, where no ledger sees a double payment."""
    result = run(
        """
import contextlib, functools

@functools.cache
def client():
    return Payments()

def test_first(sandbox):
    client().payouts.create(**PAYOUT, reference="a")

def test_refused(sandbox):
    client().payouts.create(**PAYOUT, reference="a")

def test_hidden(sandbox):
    with contextlib.suppress(Exception):
        client().payouts.create(**PAYOUT, reference="a")

def test_rest():
    client().close()
"""
    )
    result.assert_outcomes(passed=3, failed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*req_00000003 paid nothing, refused for the key of a test which has ended*",
            "E *AuthenticationError*the test test_*::test_first, which has ended*client was kept*"
            "a client of its own (docs/testing.md, Programs that keep a client)*",
        ]
    )


def test_a_fault_that_did_not_happen_fails_a_test_that_passed(run: Run) -> None:
    result = run(
        """
def test_unused(sandbox):
    sandbox.on("payouts.create", reference="never").respond("http:503")
    sandbox.on("payouts.create", reference="ada@shop.test").respond("http:503")

def test_next_one_is_not_disturbed(sandbox):
    assert sandbox.unused_rules == sandbox.service.rules == []

def test_failed_anyhow(sandbox):
    sandbox.on("payouts.create").respond("http:503")
    assert False
"""
    )
    result.assert_outcomes(passed=2, errors=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*did not happen, or not as often:", "*on('payouts.create', reference='never'): met 0*"]
    )
    result.stdout.no_fnmatch_line("*ada@shop.test*met 0*")


DOUBLE = """
{mark}
def test_double(sandbox, sync_payments_client):
    sandbox.on("payouts.create").respond("lost_response", times=3)
    with pytest.raises(OutcomeUnknown):
        sync_payments_client.payouts.create(**PAYOUT, reference="a")
    sync_payments_client.payouts.create(**PAYOUT, reference="b")
"""


def test_a_double_payment_fails_the_test_and_shows_its_requests(run: Run) -> None:
    result = run(DOUBLE.format(mark=""))
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "paid_again: the money ledger does not balance",
            "  paid_again: req_*1 *reference 'a'* and req_*4 *reference 'b'* are one payout twice*",
            "    instead: *reference*resolve*",
            "*payments_allow('paid_again')*",
            "*payments sandbox: requests*",
            "* req_*1  201  POST /v1/payouts  reference 'a'  GHS 10.10  fault lost_response  key *",
            "* req_*2  201  POST /v1/payouts  reference 'a'  GHS 10.10  fault lost_response  replayed  key *",
            "* req_*4  201  POST /v1/payouts  reference 'b'  GHS 10.10  key *",
            "ERROR *test_double - Failed: paid_again: *",
        ]
    )
    result.stdout.no_fnmatch_line("*traceback entries are hidden*")


def test_a_test_may_break_a_rule_that_it_names(run: Run) -> None:
    mark = "@pytest.mark.payments_allow('paid_again')"
    run(DOUBLE.format(mark=mark), "--strict-markers").assert_outcomes(passed=1)


NAMES = "payments_allow takes names, such as payments_allow('paid_again', 'key_reused')"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("'paid_agin'", "payments_allow: 'paid_agin' is no rule"),
        ("['paid_again']", NAMES),
        ("rule='paid_again'", NAMES),
    ],
)
def test_what_is_no_rule_is_refused_with_the_names_of_all(run: Run, given: str, problem: str) -> None:
    result = run(DOUBLE.format(mark=f"@pytest.mark.payments_allow({given})"))
    result.assert_outcomes(errors=1)
    (line,) = [line for line in result.outlines if line.startswith("payments_allow")]
    assert line == f"{problem}; the rules are {', '.join(RULES)}"
    assert len(RULES) == 8
    result.stdout.no_fnmatch_line("*Error*")
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_failing_test_shows_its_own_requests_and_no_account_data(run: Run) -> None:
    result = run(
        """
def test_other(sync_payments_client):
    sync_payments_client.payouts.create(**PAYOUT, reference="a")

def test_fails(sandbox, sync_payments_client):
    sync_payments_client.payouts.create(**PAYOUT, reference="a")
    for _ in range(30):
        sync_payments_client.payouts.list(customer_id="+233200000001" + 200 * "x")
    AsyncPayments  # not used
    client = AsyncPayments("sk_sandbox_unknown", base_url=sandbox.base_url)
    try:
        asyncio.run(client.payouts.list())
    finally:
        assert False

def test_nothing_asked(sandbox):
    assert False
""",
        "--tb=line",
    )
    result.assert_outcomes(passed=1, failed=2)
    shown = result.stdout.str()
    assert shown.count("payments sandbox: requests") == 1
    assert shown.count(" GET /v1/payouts") == 25
    assert "(7 earlier requests)" in shown
    assert "401  GET /v1/payouts  unknown API key" in shown
    assert "233200000001" not in shown
    assert max(len(line) for line in shown.splitlines() if "  200  GET" in line) < 150


TOLD = """
def pay(client, reference):
    return client.payouts.create(**PAYOUT, reference=reference)  # theirs

def test_refused(sandbox, sync_payments_client):
    pay(sync_payments_client, "a")
    pay(sync_payments_client, "a")

@pytest.mark.asyncio
async def test_awaited(sandbox, payments_client):
    await payments_client.payouts.create(**{**PAYOUT, "amount": 0})

def test_misspelt(sandbox):
    sandbox.on("payouts.create").respond("lost_respnse")
"""


def test_a_failure_shows_the_test_s_lines_and_none_of_ours(run: Run) -> None:
    result = run(TOLD)
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines(
        [
            "*payouts.create(**PAYOUT, reference=reference)  # theirs",
            "E *DuplicateReference: *",
            "*payments sandbox: requests*",
            ">*await payments_client.payouts.create(*",
            "E *InvalidRequest: *amount*",
            '>*respond("lost_respnse")',
            "E *UnknownWord: *",
        ]
    )
    result.stdout.no_fnmatch_line("*payments_async/*")
    result.stdout.no_fnmatch_line("*payments_sync/*")


def test_a_full_trace_shows_our_frames_too(run: Run) -> None:
    run(TOLD, "--full-trace", "-k", "refused").stdout.fnmatch_lines(["*payments_sync/*", "*payments_async/*"])


PROJECTS = {
    "other keys share the clock": (
        2,
        """
def test_blocking(sandbox, sync_payments_client):
    merchant = sync_payments_client.with_options(api_key=sandbox.new_key())
    assert merchant.payouts.wait(merchant.payouts.create(**PAYOUT, reference="a")).is_successful
    assert len(sandbox.books.payouts()) == 1

async def test_awaited(sandbox, payments_client):
    merchant = payments_client.with_options(api_key=sandbox.new_key())
    assert (await merchant.payouts.wait(await merchant.payouts.create(**PAYOUT, reference="a"))).is_successful
""",
    ),
    "a tenant of its own": (
        3,
        """
seen = []

@pytest.mark.parametrize("turn", [1, 2])
def test_alone(turn, sandbox, sync_payments_client):
    sync_payments_client.payouts.create(**PAYOUT, reference="a")
    assert len(sandbox.books.payouts()) == len(sandbox.requests) == 1
    seen.append((sandbox.base_url, sandbox.api_key))

def test_one_address_two_keys():
    assert len({address for address, _ in seen}) == 1
    assert len({key for _, key in seen}) == 2
""",
    ),
    "waits take no time": (
        2,
        """
from datetime import timedelta

def test_patience(sandbox, sync_payments_client, sandbox_clock):
    sandbox.on("payouts.create", reference="a").outcome("hang")
    began = sandbox_clock.now()
    payout = sync_payments_client.payouts.create(**PAYOUT, reference="a")
    with pytest.raises(WaitTimeout):
        sync_payments_client.payouts.wait(payout, deadline=3600)
    assert sandbox_clock.now() - began >= timedelta(hours=1)

def test_moved(sandbox, sync_payments_client, sandbox_clock):
    sync_payments_client.payouts.create(**PAYOUT, reference="b")
    changes = sandbox_clock.advance(timedelta(seconds=5))
    assert [change.after for change in changes] == ["processing", "completed"]
    assert sandbox_clock.advance(1.0) == []
""",
    ),
    "options": (
        1,
        """
@pytest.fixture(scope="session")
def payments_sandbox_options():
    return {"profile": "hostile"}

@pytest.fixture
def payments_client_options():
    return {"max_retries": 0, "timeout": 2.0}

def test_hostile_and_impatient(sandbox, sync_payments_client):
    assert sandbox.service.profile.name == "hostile"
    sandbox.on("payouts.create").respond("hang")
    with pytest.raises(OutcomeUnknown):
        sync_payments_client.payouts.create(**PAYOUT, reference="a")
    assert "SandboxTenant of Sandbox" in repr(sandbox)
""",
    ),
    "a runtime of its own": (
        1,
        """
@pytest.fixture
def payments_client_options():
    from payments_async._runtime import SYSTEM
    return {"runtime": SYSTEM}

def test_a_runtime_of_its_own_is_left_as_it_is(sandbox, sync_payments_client):
    sync_payments_client.payouts.create(**PAYOUT, reference="a")
    assert sandbox.advance(5)
""",
    ),
    "a sandbox of its own": (
        1,
        """
from payments_async.sandbox import Sandbox

@pytest.fixture
def sandbox():
    with Sandbox() as sandbox:
        yield sandbox

def test_a_sandbox_of_the_project_s_own_comes_first(sandbox, sync_payments_client):
    assert type(sandbox) is Sandbox
    sync_payments_client.payouts.create(**PAYOUT, reference="a")
    sandbox.advance(5)
    assert sandbox.books.payouts()[0].status == "completed"
""",
    ),
}
"""What holds in tests: how many of them, and their texts. The last three override fixtures."""


@pytest.mark.parametrize("case", PROJECTS)
def test_what_projects_rely_on_holds(run: Run, case: str) -> None:
    count, tests = PROJECTS[case]
    run(tests, mode="auto").assert_outcomes(passed=count)


LOADED = """
import sys
before = set(sys.modules)
import payments_async.testing._plugin
heavy = {"aiohttp", "attr", "msgspec", "payments_async.sandbox", "payments_async.client"} & set(sys.modules)
ours = [name for name in set(sys.modules) - before if name.startswith("payments")]
print(sorted(heavy), len(ours))
"""


def test_the_plugin_s_module_imports_pytest_and_nothing_else() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import pytest" + LOADED], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[] 4\n"


def test_pytest_finds_the_plugin_by_its_entry_point() -> None:
    (point,) = (point for point in entry_points(group="pytest11") if point.name == "payments")
    assert (point.load().__name__, f"-p {point.value}") == (point.value, " ".join(OWN[:2]))
