"""Agents that trace HTTP see every call, awaited and blocking, and their headers leave with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.support.creations import create
from tests.support.surfaces import Connect
from tests.support.watched import WatchedSandbox

if TYPE_CHECKING:  # agents are imported by the tests that use them, which takes a while
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import Tracer


@pytest.fixture
def exported() -> InMemorySpanExporter:
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


async def test_opentelemetry_sees_a_call(
    connect: Connect, watched: WatchedSandbox, tracer: Tracer, exported: InMemorySpanExporter
) -> None:
    """Below its caller's span."""
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


SERVED = """
import asyncio, sys
{before}
from payments_async import AsyncPayments
from payments_async.sandbox import Sandbox
from payments_sync import Payments
{agent}
async def awaited(sandbox):
    async with AsyncPayments(sandbox.api_key, base_url=sandbox.base_url) as client:
        with traced("async"):
            await client.payouts.list()

def blocking(sandbox):
    with Payments(sandbox.api_key, base_url=sandbox.base_url) as client, traced("sync"):
        assert list(client.payouts.iterate()) == []

with Sandbox() as sandbox:
    asyncio.run(awaited(sandbox))
    blocking(sandbox)
    for surface, request in zip(("async", "sync"), sandbox.requests, strict=True):
        seen, left = told(surface, f"{{sandbox.base_url}}/payouts"), leaves(surface, request.headers)
        print(surface, "seen" if seen else "unseen", "left" if left else "stayed")
"""
SENTRY = """
import sentry_sdk
from sentry_sdk.integrations.aiohttp import AioHttpIntegration
from sentry_sdk.transport import Transport

class Kept(Transport):
    def capture_envelope(self, envelope):
        found.update((item.payload.json["transaction"], item.payload.json) for item in envelope
                     if item.type == "transaction")

def traced(name):
    return sentry_sdk.start_transaction(name=name, op="task")

def told(name, url):
    sentry_sdk.flush()
    (span,) = found[name]["spans"]
    call = ("http.client", f"GET {url}", found[name]["contexts"]["trace"]["span_id"])
    return (span["op"], span["description"], span["parent_span_id"]) == call

def leaves(name, headers):
    return headers["sentry-trace"].partition("-")[0] == found[name]["contexts"]["trace"]["trace_id"]

found = {}
sentry_sdk.init(  # of what it integrates with by itself, aiohttp alone: the rest takes seconds to import
    "http://key@127.0.0.1:9/1", transport=Kept, traces_sample_rate=1.0,
    auto_enabling_integrations=False, integrations=[AioHttpIntegration()],
)
"""
NEW_RELIC = """
import os
os.environ.update(NEW_RELIC_DEVELOPER_MODE="true", NEW_RELIC_LICENSE_KEY="0" * 40)  # talks to no network
import newrelic.agent
newrelic.agent.initialize()
from newrelic.core.application import Application
application = newrelic.agent.register_application("shop", timeout=300)
found = {}

def record(self, data):
    found[data.name] = [(node.library, node.method, node.url) for node in data.root.children]

Application.record_transaction = record

def traced(name):
    return newrelic.agent.BackgroundTask(application, name)

def told(name, url):
    return found[f"Function/{name}"] == [("aiohttp", "GET", url)]

def leaves(name, headers):
    return "traceparent" in headers
"""


@cache
def traced(*, before: str = "", agent: str = "") -> list[str]:
    """Of each surface, whether a program's agent saw the call, and its headers left with it."""
    program = SERVED.format(before=before, agent=agent)
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=300, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.splitlines()


def test_sentry_sees_a_call(surface: str) -> None:
    assert f"{surface} seen left" in traced(agent=SENTRY)


def test_new_relic_sees_a_call(surface: str) -> None:
    """Its agent wraps aiohttp's methods as they are imported, and keeps traces by thread and by task."""
    assert f"{surface} seen left" in traced(before=NEW_RELIC)
