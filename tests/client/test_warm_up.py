"""Warming up: what the first calls of a worker would load and open is there, and nothing is changed."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from typing import Any

import pytest

from payments_async import APIConnectionError, AuthenticationError, NotFoundError, PermissionDeniedError
from payments_async.errors import PaymentsError
from payments_async.sandbox import Sandbox
from tests.support.rawserver import RawServer, Step
from tests.support.surfaces import Connect, error_of
from tests.sync.scenes import payout, run_with_service

UNREACHABLE = "http://127.0.0.1:9/v1"

FIRST_CALLS = """
AUDITED = ("compile", "import", "socket.connect", "socket.getaddrinfo")

def use(payments, finished):
    checkout = finished(payments.checkouts.create(amount=50, currency="XOF"))
    intent = finished(payments.payment_intents.create(amount=50, currency="XOF"))
    made = finished(payments.payouts.create(**payout("invoice-7")))
    finished(payments.checkouts.retrieve(checkout.id))
    finished(payments.payment_intents.list())
    finished(payments.payment_intents.refund_availability(intent.id))
    finished(payments.payouts.list())
    finished(payments.payouts.sync(made.id))
    finished(payments.methods.status("mtn_bj", "BJ"))

def watched(payments, finished):
    finished(payments.warm_up())
    seen, watching = [], [True]
    sys.addaudithook(lambda event, args: watching and event in AUDITED and seen.append((event, args[:2])))
    use(payments, finished)
    watching.clear()
    print(seen)
"""
BLOCKING = """
with Payments(key, base_url=base_url) as client:
    watched(client, lambda answer: answer)
"""
AWAITED = """
import asyncio
from payments_async import AsyncPayments

with asyncio.Runner() as runner:
    client = AsyncPayments(key, base_url=base_url)
    watched(client, runner.run)
    runner.run(client.aclose())
"""


async def test_it_reads_one_page_and_changes_nothing(connect: Connect, sandbox: Sandbox) -> None:
    client = connect(sandbox)
    assert await client.warm_up() is True
    assert [request.operation for request in sandbox.requests] == ["payouts.list"]
    assert client.limits_snapshot()["read"].used == 1
    assert client.limits_snapshot()["write"].used == 0
    assert sandbox.books.payouts() == []


@pytest.mark.parametrize("program", [BLOCKING, AWAITED], ids=["sync", "async"])
def test_the_first_calls_of_a_process_load_compile_and_open_nothing(program: str) -> None:
    """But for the first answer with an unknown field, which the hostile gap profile adds."""
    with Sandbox(profile="observed") as sandbox:
        assert run_with_service(sandbox, FIRST_CALLS + program) == "[]\n"


@pytest.mark.parametrize(
    ("words", "error"),
    [("http:401", AuthenticationError), ("http:403", PermissionDeniedError), ("http:404", NotFoundError)],
)
async def test_a_key_or_address_that_is_wrong_shows_at_once_and_the_client_can_still_be_used(
    connect: Connect, sandbox: Sandbox, words: str, error: type[PaymentsError]
) -> None:
    sandbox.on("payouts.list").respond(words)
    client = connect(sandbox)
    raised = await error_of(error, client.warm_up())
    assert raised.effect == "none"
    await client.payouts.create(**payout("invoice-7"))
    assert len(sandbox.books.payouts()) == 1


async def test_a_program_starts_without_a_network(connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    assert await connect(base_url=UNREACHABLE, max_retries=0).warm_up() is False
    assert "the client is not warm yet: payouts.list: no answer from 127.0.0.1" in caplog.text


@pytest.mark.parametrize("words", ["http:503", "429:1"])
async def test_a_program_starts_without_service(connect: Connect, sandbox: Sandbox, words: str) -> None:
    sandbox.on("payouts.list").respond(words)
    client = connect(sandbox, max_retries=0)
    assert await client.warm_up() is False
    assert await client.warm_up() is True


async def test_a_certificate_that_is_not_trusted_shows_at_once(connect: Connect) -> None:
    with RawServer(tls=True) as server, pytest.raises(APIConnectionError) as raised:
        await connect(base_url=server.url("/v1", scheme="https"), max_retries=0).warm_up()
    assert raised.value.kind == "tls"


async def test_it_waits_no_longer_than_its_deadline(connect: Connect) -> None:
    with RawServer() as server:
        server.scripts["/v1/payouts"] = [Step.HANG]
        assert await connect(base_url=server.url("/v1")).warm_up(deadline=0.05) is False


# --- Clients stay in their process ---


def pay(client: Any) -> None:
    """What a process is to do."""


@pytest.mark.parametrize("part", ["client", "payouts", "create"])
async def test_a_client_that_is_sent_to_another_process_says_what_to_do(connect: Connect, part: str) -> None:
    client = connect()
    whole = getattr(client, "_blocking", client)
    sent = {"client": whole, "payouts": whole.payouts, "create": whole.payouts.create}[part]
    for send in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="has no pickle: make a client in each process"):
            send(sent)
    with pytest.raises(TypeError, match="make a client in each process"):
        multiprocessing.get_context("spawn").Process(target=pay, args=(sent,)).start()
