"""The extra `otel`: spans and metrics of calls, awaited and blocking, without anything secret or personal."""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from payments_async import (
    APIConnectionError,
    AsyncPayments,
    Guard,
    GuardRefused,
    NotFoundError,
    OutcomeUnknown,
    RateLimits,
    events,
)
from payments_async.otel import OpenTelemetry
from tests.conftest import BASE_URL
from tests.support.canary import CANARY_ACCOUNT, CANARY_KEY, NEEDLE, echoed
from tests.support.motion import PAYOUT, REPLAYED, payout_answer, play, refusal
from tests.support.patience import until
from tests.support.scripted import EMPTY_PAGE, SilentTransport, answer, lost, unsent
from tests.support.surfaces import Connect


class Backend:
    """What a program's OpenTelemetry has been told."""

    def __init__(self) -> None:
        self.spans, self.reader, self.tracers = (
            InMemorySpanExporter(),
            InMemoryMetricReader(),
            TracerProvider(),
        )
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.meters = MeterProvider([self.reader])
        self.heard: list[events.Event] = []
        self.telemetry = OpenTelemetry(
            tracer_provider=self.tracers, meter_provider=self.meters, on_event=self.heard.append
        )

    def ended(self) -> list[ReadableSpan]:
        return list(self.spans.get_finished_spans())

    def points(self, metric: str) -> list[tuple[dict[str, Any], Any]]:
        """Attributes and figures of a metric."""
        data = self.reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), point)
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]

    def everything(self) -> str:
        data = self.reader.get_metrics_data()
        return "".join(span.to_json() for span in self.ended()) + (data.to_json() if data else "")


@pytest.fixture
def backend() -> Iterator[Backend]:
    backend = Backend()
    yield backend
    backend.meters.shutdown()
    backend.tracers.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_call_is_a_span_with_a_child_for_each_attempt(connect: Connect, backend: Backend) -> None:
    script = (refusal(429, {"Retry-After": "7"}), lost("timeout"), payout_answer(headers=REPLAYED))
    client = play(connect, *script, on_event=backend.telemetry).client
    with backend.tracers.get_tracer("shop").start_as_current_span("pay"):
        await client.payouts.create(**PAYOUT)
    *attempts, call, caller = backend.ended()
    assert [(span.name, span.kind.name) for span in (*attempts, call)] == [
        *[("POST /v1/payouts", "CLIENT")] * 3,
        ("payments payouts.create", "INTERNAL"),
    ]
    assert call.parent == caller.get_span_context()
    assert [span.parent for span in attempts] == [call.get_span_context()] * 3
    address = {"server.address": "127.0.0.1", "server.port": 9, "url.full": f"{BASE_URL}/payouts"}
    http = {"http.request.method": "POST", "url.template": "/v1/payouts", **address}
    ends = (
        {"http.response.status_code": 429, "error.type": "429", "payments.verdict": "not_executed"},
        {"http.request.resend_count": 1, "error.type": "timeout", "payments.verdict": "in_doubt"},
        {"http.request.resend_count": 2, "http.response.status_code": 201, "payments.verdict": "executed"},
    )
    assert [attributes(span) for span in attempts] == [{**http, **end} for end in ends]
    assert [span.status.status_code.name for span in (*attempts, call)] == ["ERROR"] * 2 + ["UNSET"] * 2
    assert attributes(call) == {"payments.operation": "payouts.create", "payments.effect": "happened"}
    assert [event.name for event in call.events] == [
        *("payments.limit.closed", "payments.retry.scheduled", "payments.limit.waited"),
        *("payments.retry.scheduled", "payments.replayed"),
    ]
    waited = dict(call.events[2].attributes or {})
    assert 7.0 < waited["payments.waited"] <= 8.1
    assert trace.get_current_span() is trace.INVALID_SPAN


async def test_metrics_count_calls_attempts_and_the_time_waited(connect: Connect, backend: Backend) -> None:
    script = (payout_answer(), refusal(404), unsent())
    limits = RateLimits(writes=1)
    client = play(connect, *script, on_event=backend.telemetry, limits=limits, max_retries=0).client
    await client.payouts.create(**PAYOUT)
    with pytest.raises(NotFoundError):
        await client.payouts.list()
    with pytest.raises(APIConnectionError):
        await client.payouts.create(**PAYOUT)
    create = {"payments.operation": "payouts.create"}
    calls = {
        (p["payments.operation"], p.get("error.type")): p
        for p, _ in backend.points("payments.client.call.duration")
    }
    assert {key: p["payments.effect"] for key, p in calls.items()} == {
        ("payouts.create", None): "happened",
        ("payouts.list", "NotFoundError"): "none",
        ("payouts.create", "APIConnectionError"): "none",
    }
    attempts = [p for p, _ in backend.points("http.client.request.duration")]
    assert sorted((p["http.request.method"], p.get("error.type", "")) for p in attempts) == [
        ("GET", "404"),
        ("POST", ""),
        ("POST", "connect"),
    ]
    ((facts, waited),) = backend.points("payments.client.limit.wait")
    assert (facts, waited.count) == (create, 1)
    assert 60.0 <= waited.sum <= 60.1
    assert waited.bucket_counts[-1] == 0, "a minute is told from more than two"


@pytest.mark.parametrize(
    ("path", "name", "shown"),
    [
        ("/payouts/po_7/sync", "GET /at/v1/payouts/{payout_id}/sync", "/payouts/{payout_id}/sync"),
        ("/people/po_7", "GET", "/{path}"),
    ],
)
async def test_a_path_is_told(connect: Connect, backend: Backend, path: str, name: str, shown: str) -> None:
    base = "http://127.0.0.1:9/at/v1"
    said = answer(200, {"data": {"id": "po_7"}})
    client = play(connect, said, base_url=base, on_event=backend.telemetry).client
    await client.request("GET", path, params={"customer_id": "cu_7"})
    attempt, call = backend.ended()
    assert (attempt.name, call.name) == (name, "payments request")
    assert attributes(attempt)["url.full"] == base + shown
    assert "po_7" not in backend.everything()
    assert "cu_7" not in backend.everything()


async def test_an_attempt_that_is_cut_short_is_measured_too(backend: Backend) -> None:
    client = AsyncPayments(
        CANARY_KEY, base_url=BASE_URL, transport=SilentTransport(), on_event=backend.telemetry
    )
    task = asyncio.ensure_future(client.payouts.list())
    await until(lambda: any(isinstance(event, events.RequestSent) for event in backend.heard))
    task.cancel()
    await asyncio.wait([task])
    attempt, call = backend.ended()
    assert attributes(attempt)["error.type"] == "cancelled"
    assert attributes(attempt)["payments.verdict"] == "in_doubt"
    assert attributes(call)["error.type"] == "CancelledError"
    ((facts, point),) = backend.points("http.client.request.duration")
    assert (facts["error.type"], point.count) == ("cancelled", 1)
    assert isinstance(backend.heard[-1], events.CallEnded)


async def test_a_hook_that_drops_events_loses_only_their_spans(connect: Connect, backend: Backend) -> None:
    def pass_on(event: events.Event) -> None:
        if not isinstance(event, events.RequestSent):
            backend.telemetry(event)

    await play(connect, payout_answer(), on_event=pass_on).client.payouts.create(**PAYOUT)
    assert [span.name for span in backend.ended()] == ["payments payouts.create"]
    ((_, measured),) = backend.points("http.client.request.duration")
    assert measured.count == 1
    assert events.AttemptEnded in map(type, backend.heard)


def test_a_call_that_ends_elsewhere_leaves_that_context_alone(backend: Backend) -> None:
    begun = events.CallStarted("payouts.list", 0, "GET", "/payouts", "https://api.test/v1", call=7)
    contextvars.Context().run(backend.telemetry, begun)
    with backend.tracers.get_tracer("shop").start_as_current_span("other") as other:
        backend.telemetry(events.CallEnded("payouts.list", 0, "none", None, None, 0.1, call=7))
        assert trace.get_current_span() is other
    assert [span.name for span in backend.ended()] == ["payments payouts.list", "other"]


def test_events_of_calls_that_began_unheard_are_passed_on(backend: Backend) -> None:
    late = events.CallEnded("payouts.list", 1, "none", None, 200, 0.1, call=8)
    cancelled = events.CallCancelled("payouts.list", 1, "none", None, call=9)
    backend.telemetry(events.CallStarted("payouts.list", 0, "GET", None, "http://127.0.0.1/v1", call=9))
    for event in (late, cancelled):
        backend.telemetry(event)
    assert backend.heard[-2:] == [late, cancelled]
    assert backend.ended() == []
    backend.telemetry(events.CallEnded("payouts.list", 0, "none", None, None, 0.1, call=9))
    OpenTelemetry()(late)  # to nobody


async def test_a_refusal_of_the_guard_is_an_event_of_the_span(connect: Connect, backend: Backend) -> None:
    client = play(connect, on_event=backend.telemetry, guard=Guard(most={"XOF": 5})).client
    with pytest.raises(GuardRefused):
        await client.payouts.create(**{**PAYOUT, "amount": 10})
    (call,) = backend.ended()
    assert attributes(call)["error.type"] == "GuardRefused"
    assert [(each.name, dict(each.attributes or {})) for each in call.events] == [
        ("payments.guard.refused", {"payments.rule": "most"})
    ]


async def test_nothing_told_is_a_secret_or_personal(connect: Connect, backend: Backend) -> None:
    said = answer(422, {"message": f"no {CANARY_ACCOUNT}", "errors": {"instrument": [CANARY_ACCOUNT]}})
    script = (lost(), echoed(said), echoed(payout_answer()), EMPTY_PAGE)
    client = play(connect, *script, on_event=backend.telemetry, api_key=CANARY_KEY).client
    person = {"first_name": "Ada", "last_name": "Adeyemi", "email": "ada@shop.test"}
    given = {**PAYOUT, "customer": person, "description": "Ada's wages", "metadata": {"who": "Ada"}}
    key = "key-of-ada-1"
    with pytest.raises(OutcomeUnknown):
        await client.payouts.create(**given, idempotency_key=key)
    await client.payouts.create(**given)
    await client.payouts.list(customer_id="cu_ada")
    shown = backend.everything()
    assert "payouts.create" in shown
    private = ("90112233", "Ada", "ada@", "Adeyemi", key, "cu_ada", '"r-1"', "po_1", CANARY_ACCOUNT, NEEDLE)
    assert [text for text in private if text in shown] == []


def test_the_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "payments_async.otel")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(ImportError, match=r'need opentelemetry: pip install "payments-sdk\[otel\]"'):
        import_module("payments_async.otel")
