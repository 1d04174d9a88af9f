"""Agents that trace HTTP see every call, awaited and blocking, and their headers leave with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.creations import create
from tests.support.watched import WatchedSandbox

if TYPE_CHECKING:  # agents are imported by the tests that use them, which takes a while
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Tracer

Connect = Callable[..., Any]


@pytest.fixture
def exported() -> InMemorySpanExporter:
    """The spans that have ended."""
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


@pytest.fixture
def tracer(exported: InMemorySpanExporter) -> Iterator[Tracer]:
    """Of a program that has OpenTelemetry's instrumentation of aiohttp's client, until the test ends."""
    from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exported))
    instrumentor = AioHttpClientInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield provider.get_tracer("shop")
    instrumentor.uninstrument()


async def test_opentelemetry_sees_each_call_below_its_callers_span_and_its_context_leaves(
    connect: Connect, watched: WatchedSandbox, tracer: Tracer, exported: InMemorySpanExporter
) -> None:
    client = connect(watched)
    with tracer.start_as_current_span("pay the salaries"):
        await create(client, "payouts")
        await client.payouts.list()
    created, listed, caller = exported.get_finished_spans()
    assert [(span.name, span.kind.name) for span in (created, listed)] == [
        ("POST", "CLIENT"),
        ("GET", "CLIENT"),
    ]
    for span, request in zip((created, listed), watched.arrived, strict=True):
        assert span.parent is not None
        assert span.parent.span_id == caller.get_span_context().span_id
        context = span.get_span_context()
        traceparent = dict(request.headers)["traceparent"]
        assert traceparent.startswith(f"00-{context.trace_id:032x}-{context.span_id:016x}-")


async def test_what_stands_in_for_the_connector_answers_https_calls(connect: Connect) -> None:
    """aiointercept replaces methods of aiohttp's connector, and adds a header to the request."""
    from aiointercept import aiointercept

    async with aiointercept(mock_external_urls=True) as service:
        service.get("https://api.test/v1/payouts?per_page=20", payload={"data": []})
        service.get("https://api.test/v1/payouts", payload={"data": []}, repeat=True)
        client = connect(base_url="https://api.test/v1")
        for _ in range(2):
            assert list(await client.payouts.list()) == []


SERVED = """
import asyncio, sys
{before}
from payments_async import AsyncPayments
from payments_async.sandbox import Sandbox
from payments_sync import Payments
{agent}
async def awaited(sandbox):
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
        with traced("awaited"):
            await client.payouts.list()

def blocking(sandbox):
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client, traced("blocking"):
        assert list(client.payouts.iterate()) == []

with Sandbox() as sandbox:
    asyncio.run(awaited(sandbox))
    blocking(sandbox)
    check(sandbox)
"""
SENTRY = """
import sentry_sdk
from sentry_sdk.transport import Transport

class Kept(Transport):
    def capture_envelope(self, envelope):
        found.extend(item.payload.json for item in envelope if item.type == "transaction")

def traced(name):
    return sentry_sdk.start_transaction(name=name, op="task")

def check(sandbox):
    sentry_sdk.flush()
    for each in found:
        (span,) = each["spans"]
        assert (span["op"], span["description"]) == ("http.client", f"GET {sandbox.base_url}/payouts"), span
        assert span["parent_span_id"] == each["contexts"]["trace"]["span_id"]
    assert [each["transaction"] for each in found] == ["awaited", "blocking"]
    left = [request.headers["sentry-trace"].partition("-")[0] for request in sandbox.requests]
    assert left == [each["contexts"]["trace"]["trace_id"] for each in found], left

found = []
sentry_sdk.init("http://key@127.0.0.1:9/1", transport=Kept, traces_sample_rate=1.0)
"""
NEW_RELIC = """
import os
os.environ.update(NEW_RELIC_DEVELOPER_MODE="true", NEW_RELIC_LICENSE_KEY="0" * 40)  # talks to no network
import newrelic.agent
newrelic.agent.initialize()
from newrelic.core.application import Application
application = newrelic.agent.register_application("shop", timeout=20)
found = {}

def record(self, data):
    found[data.name] = [(node.library, node.method, node.url) for node in data.root.children]

Application.record_transaction = record

def traced(name):
    return newrelic.agent.BackgroundTask(application, name)

def check(sandbox):
    call = ("aiohttp", "GET", f"{sandbox.base_url}/payouts")
    assert found == {"Function/awaited": [call], "Function/blocking": [call]}, found
    assert ["traceparent" in request.headers for request in sandbox.requests] == [True, True]
"""


def ran(*, before: str = "", agent: str = "") -> None:
    program = SERVED.format(before=before, agent=agent)
    subprocess.run([sys.executable, "-c", program], check=True, timeout=50)


def test_sentry_sees_each_call_and_its_context_leaves() -> None:
    ran(agent=SENTRY)


def test_new_relic_sees_each_call_and_its_context_leaves() -> None:
    """Its agent wraps aiohttp's methods as they are imported, and keeps traces by thread and by task."""
    ran(before=NEW_RELIC)
