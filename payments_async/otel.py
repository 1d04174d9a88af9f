"""OpenTelemetry, extra `otel`: a span for each call, a child for each of its attempts, and metrics.

    client = AsyncPayments(on_event=OpenTelemetry())

The blocking client takes it, too. It listens to `events` and adds nothing to a call of a client without it.
The spans of attempts follow the conventions for HTTP clients. Nothing in a span or metric is a secret or
personal: no key, id, reference, query, header, body or message; paths are templates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
from typing import Any, Final
from urllib.parse import urlsplit

import attrs

from . import events
from ._extras import needs
from ._version import __version__

try:
    from opentelemetry import context, metrics, trace
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer, TracerProvider
except ImportError as _missing:
    raise ImportError(needs("spans and metrics need", "otel")) from _missing

__all__ = ["OpenTelemetry"]

Attributes = Mapping[str, str | int | float]

_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""Seconds: the bounds that the conventions for HTTP give to histograms of durations."""
_LONG_BOUNDS: Final = (*_BOUNDS, 30.0, 60.0, 120.0)
"""Seconds: calls also wait for the rate limit, a minute, or as long as a 429 says."""

_SPAN_EVENTS: Final[Mapping[type[events.Event], tuple[str, tuple[str, ...]]]] = {
    events.Throttled: ("payments.limit.waited", ("waited",)),
    events.GateClosed: ("payments.limit.closed", ("seconds",)),
    events.RetryScheduled: ("payments.retry.scheduled", ("delay", "reason")),
    events.Replayed: ("payments.replayed", ()),
    events.PayoutRefused: ("payments.guard.refused", ("rule",)),
    events.LimitStoreLost: ("payments.limit_store.lost", ()),
    events.LimitStoreFound: ("payments.limit_store.found", ("lasted",)),
}
"""Events that become events of the call's span, and the facts that go along."""


@attrs.define(eq=False)
class _OpenSpan:
    """A span that has begun, and the context that was in force before it."""

    span: Span
    _token: Token[Any]

    @classmethod
    def begin(cls, tracer: Tracer, name: str, kind: SpanKind, facts: Attributes) -> _OpenSpan:
        """Begin a span below the current one, and make it the current one."""
        span = tracer.start_span(name, kind=kind, attributes=facts)
        return cls(span, context.attach(trace.set_span_in_context(span)))

    def end(self, failure: str | None, facts: Attributes) -> None:
        """End the span, as an error if there is a failure, and leave its context."""
        self.span.set_attributes(facts)
        if failure is not None:
            self.span.set_attribute("error.type", failure)
            self.span.set_status(StatusCode.ERROR)
        self.span.end()
        if trace.get_current_span() is self.span:  # else a dropped call is ended by the garbage collector
            context.detach(self._token)


@attrs.define(eq=False)
class _OpenCall:
    """A call under way."""

    operation: Attributes
    http: Attributes
    """Attributes of its attempts' spans and metrics."""
    url: str
    span: _OpenSpan
    attempt: _OpenSpan | None = None


class OpenTelemetry:
    """Makes spans and metrics of the events of any number of clients: pass it as their `on_event`."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        on_event: Callable[[events.Event], object] | None = None,
    ) -> None:
        """Make the instruments.

        Args:
            tracer_provider: the global one when absent.
            meter_provider: the global one when absent.
            on_event: a hook of your own, called with each event after its span has begun or ended.
        """
        self._on_event = on_event
        self._calls: dict[int, _OpenCall] = {}
        self._tracer = trace.get_tracer(__package__, __version__, tracer_provider)
        meter = metrics.get_meter(__package__, __version__, meter_provider)

        def seconds(name: str, description: str, bounds: Sequence[float]) -> metrics.Histogram:
            return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=bounds)

        self._durations = seconds("payments.client.call.duration", "Duration of calls.", _LONG_BOUNDS)
        requests = "Duration of HTTP client requests."
        self._attempts = seconds("http.client.request.duration", requests, _BOUNDS)
        waits = "Time that calls waited for the rate limit."
        self._waits = seconds("payments.client.limit.wait", waits, _LONG_BOUNDS)

    def __call__(self, event: events.Event) -> None:
        """Take an event of a call."""
        if isinstance(event, events.CallStarted):
            self._start_call(event)
        elif call := self._calls.get(event.call):
            self._record_event(call, event)
        if self._on_event is not None:
            self._on_event(event)

    def _start_call(self, event: events.CallStarted) -> None:
        """Begin the span of a call. The name of an unlisted operation holds its path, and is left out."""
        name = "request" if " " in event.operation else event.operation
        operation = {"payments.operation": name}
        parts = urlsplit(event.base_url)
        http: dict[str, str | int] = {
            "http.request.method": event.method,
            "server.address": parts.hostname or "",
            "server.port": parts.port or (443 if parts.scheme == "https" else 80),
        }
        if event.template is not None:
            http["url.template"] = parts.path + event.template
        url = event.base_url + (event.template or "/{path}")
        span = _OpenSpan.begin(self._tracer, f"payments {name}", SpanKind.INTERNAL, operation)
        self._calls[event.call] = _OpenCall(operation, http, url, span)

    def _record_event(self, call: _OpenCall, event: events.Event) -> None:
        if isinstance(event, events.RequestSent):
            facts = {**call.http, "url.full": call.url}
            if event.attempt > 1:
                facts["http.request.resend_count"] = event.attempt - 1
            name = f"{event.method} {call.http.get('url.template', '')}".strip()
            call.attempt = _OpenSpan.begin(self._tracer, name, SpanKind.CLIENT, facts)
        elif isinstance(event, events.AttemptEnded):
            self._end_attempt(call, event)
        elif isinstance(event, events.CallEnded):
            self._end_call(call, event)
        elif type(event) in _SPAN_EVENTS:
            name, fields = _SPAN_EVENTS[type(event)]
            facts = {f"payments.{field}": getattr(event, field) for field in fields}
            call.span.span.add_event(name, facts)
            if isinstance(event, events.Throttled):
                self._waits.record(event.waited, call.operation)

    def _end_attempt(self, call: _OpenCall, event: events.AttemptEnded) -> None:
        status = event.status
        answer = {} if status is None else {"http.response.status_code": status}
        failure = None if status is not None and status < 400 else str(status or event.reason)
        failed = {} if failure is None else {"error.type": failure}
        self._attempts.record(event.elapsed, {**call.http, **answer, **failed})
        if call.attempt is not None:  # else a hook between has kept RequestSent to itself
            call.attempt.end(failure, {**answer, "payments.verdict": event.verdict})
            call.attempt = None

    def _end_call(self, call: _OpenCall, event: events.CallEnded) -> None:
        del self._calls[event.call]
        effect = {"payments.effect": event.effect}
        failed = {} if event.error is None else {"error.type": event.error}
        self._durations.record(event.elapsed, {**call.operation, **effect, **failed})
        call.span.end(event.error, effect)
