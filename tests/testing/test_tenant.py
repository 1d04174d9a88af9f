"""What a test sees of a sandbox that others use too: its own, and all of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from payments_async.sandbox import Sandbox, VirtualClock
from payments_async.testing import SandboxTenant
from tests.sandbox.raw_requests import Api, LoggedExchange

NOWHERE = "http://shop.test:9/hook"
SHARED = {
    "inspector_url",
    "clear_rules",
    "handle",
    "journal",
    "reading",
    "origin",
    "changing",
    "find_webhook",
    "profile",
    "remove_rule",
    "reset",
    "rules",
    "start",
    "stop",
}
"""What belongs to the whole service, or to the program that runs it."""


@pytest.fixture
def service() -> Iterator[Sandbox]:
    with Sandbox(clock=VirtualClock.frozen()) as service:
        yield service


@pytest.fixture
def tenants(service: Sandbox) -> tuple[SandboxTenant, SandboxTenant]:
    return SandboxTenant(service), SandboxTenant(service)


def api(tenant: SandboxTenant, key: str | None = None) -> Api:
    return Api(tenant.service, key or tenant.api_key)


def pay(tenant: SandboxTenant, **fields: Any) -> str:
    return str(api(tenant).payout(**fields).data["id"])


def test_it_has_every_method_that_is_not_the_whole_service_s() -> None:
    public = {name for name in dir(Sandbox) if not name.startswith("_")}
    assert public - set(dir(SandboxTenant)) == SHARED


@pytest.mark.parametrize("name", ["pay", "settle", "refund", "resend", "forge", "wait_for_webhooks"])
def test_methods_that_only_pass_on_have_the_signatures_of_the_sandbox(name: str) -> None:
    assert inspect.signature(getattr(SandboxTenant, name)) == inspect.signature(getattr(Sandbox, name))


def test_each_sees_the_webhooks_of_its_own_records(tenants: tuple[SandboxTenant, SandboxTenant]) -> None:
    for tenant in tenants:
        sent = pay(tenant, webhook_url=NOWHERE)
        pay(tenant)
        tenant.wait_for_webhooks()
        assert [webhook.record_id for webhook in tenant.webhooks] == [sent]
        assert len(tenant.webhooks[0].tries) == 1
    assert len(tenants[0].webhooks) == 1


def test_a_closed_tenant_s_keys_are_refused_and_the_other_s_are_not(
    tenants: tuple[SandboxTenant, SandboxTenant],
) -> None:
    first, second = tenants
    more = first.new_key()
    third = first.new_key()
    first.revoke_key(third, "lost")
    first.close()
    for tenant, key in ((first, first.api_key), (first, more), (second, second.api_key)):
        got = api(tenant, key).get("/payouts")
        assert got.status == (200 if tenant is second else 401)
        assert ("was closed" in str(got.json)) == (tenant is first)


def test_what_is_settled_sent_again_and_forged_is_its_own(
    tenants: tuple[SandboxTenant, SandboxTenant],
) -> None:
    tenant = tenants[0]
    payout = pay(tenant, webhook_url=NOWHERE)
    tenant.settle(payout, "fail:NO_FUNDS")
    assert tenant.books.payouts()[0].status == "failed"
    again = tenant.resend(tenant.webhooks[0].id)
    lie = tenant.forge(payout, "payout.failed", url=NOWHERE)
    assert [webhook.id for webhook in tenant.webhooks[2:]] == [again.id, lie.id]
    assert tenants[1].webhooks == tenants[1].deliveries == []


def test_what_is_paid_and_refunded_is_its_own(tenants: tuple[SandboxTenant, SandboxTenant]) -> None:
    stranger, tenant = tenants
    for owner in tenants:
        api(owner).intent(attempt=None, webhook_url=NOWHERE)
    (payment,) = tenant.books.payments()
    assert tenant.pay(payment.id).status == "completed"
    tenant.settle(tenant.refund(payment.id, 2, pending=True))
    assert tenant.books.payments()[0].status == "partially_refunded"
    assert stranger.books.payments()[0].status == "pending"
    assert {delivery.record_id for delivery in tenant.deliveries} == {payment.id}
    assert (stranger.deliveries, len(tenant.requests), tenant.request_log().count("\n")) == ([], 1, 0)
    assert tenant.findings() == []
    assert api(tenant, tenant.new_key("inactive")).get("/payouts").status == 401


def test_the_journal_is_of_its_own_requests_and_records(tenants: tuple[SandboxTenant, SandboxTenant]) -> None:
    first, second = tenants
    for tenant in tenants:
        pay(tenant, webhook_url=NOWHERE)
    first.wait_for_webhooks()
    first.advance(5)
    found = first.entries()
    requests = [entry.item.log for entry in found if isinstance(entry.item, LoggedExchange)]
    assert requests == first.requests
    assert {type(entry.item).__name__ for entry in found} == {
        "LoggedExchange",
        "Change",
        "Delivery",
        "WebhookTried",
    }
    assert not {entry.seq for entry in found} & {entry.seq for entry in second.entries()}
