"""The transport without a network."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from payments_async import APITimeoutError, Instrument, OutcomeUnknown
from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.testing import IN_PROCESS, InProcessTransport, SandboxTenant, SkippingRuntime
from tests.support.jumping import JumpingRuntime

PAYOUT: dict[str, Any] = {
    "amount": Decimal("5"),
    "currency": "XOF",
    "method": "mtn_bj",
    "instrument": Instrument.phone("+22990000000", "BJ"),
}


@pytest.fixture
def world() -> tuple[Sandbox, JumpingRuntime]:
    return Sandbox(), JumpingRuntime()


def client_of(connect: Callable[..., Any], world: tuple[Sandbox, JumpingRuntime], **options: Any) -> Any:
    sandbox, runtime = world
    transport = runtime.wrap(InProcessTransport(sandbox, runtime=JumpingRuntime()))
    return connect(
        api_key=sandbox.api_key, base_url=IN_PROCESS, transport=transport, runtime=runtime, **options
    )


async def test_requests_reach_the_sandbox_with_path_and_query(
    connect: Callable[..., Any], world: tuple[Sandbox, JumpingRuntime]
) -> None:
    client = client_of(connect, world)
    made = await client.payouts.create(**PAYOUT, reference="r-1")
    assert (await client.payouts.list(page_size=1)).items == (made,)
    assert world[0].requests[-1].path == "/v1/payouts?per_page=1"


@pytest.mark.parametrize("fault", ["reset", "lost_response", "cut_body", "lost_request"])
async def test_line_faults_are_survived_with_one_payout(
    connect: Callable[..., Any], world: tuple[Sandbox, JumpingRuntime], fault: str
) -> None:
    world[0].on("payouts.create").respond(fault, times=1)
    payout = await client_of(connect, world).payouts.create(**PAYOUT, reference="r-1")
    assert [attempt.reason for attempt in payout.response.attempts] == ["reset", "201"]
    assert len(world[0].books.payouts(reference="r-1")) == 1


@pytest.mark.parametrize("fault", ["slow:40s", "hang"])
async def test_an_answer_past_the_timeout_leaves_a_write_in_doubt(
    connect: Callable[..., Any], world: tuple[Sandbox, JumpingRuntime], fault: str
) -> None:
    world[0].on("payouts.create").respond(fault)
    with pytest.raises(OutcomeUnknown) as caught:
        await client_of(connect, world, max_retries=0).payouts.create(**PAYOUT)
    assert isinstance(caught.value.__cause__, APITimeoutError)


async def test_a_test_s_tenant_stands_for_its_sandbox(connect: Callable[..., Any]) -> None:
    """As whoever uses unittest reads the guide: nothing serves, and the wait takes no time."""
    tenant = SandboxTenant(Sandbox(clock=VirtualClock.frozen()))
    time = SkippingRuntime(tenant)
    transport = time.wrap(InProcessTransport(tenant))
    client = connect(api_key=tenant.api_key, base_url=IN_PROCESS, transport=transport, runtime=time)
    payout = await client.payouts.create(**PAYOUT, reference="r-1")
    assert (await client.payouts.wait(payout)).is_successful
    assert tenant.findings() == []


async def test_clients_of_other_keys_are_tenants_of_their_own(
    connect: Callable[..., Any], world: tuple[Sandbox, JumpingRuntime]
) -> None:
    client = client_of(connect, world)
    merchant = client.with_options(api_key=world[0].new_key())
    await merchant.payouts.create(**PAYOUT, reference="r-1")
    assert await client.payouts.find("r-1") is None
    assert (await merchant.payouts.find("r-1")).reference == "r-1"
