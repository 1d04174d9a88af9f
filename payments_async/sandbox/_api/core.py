"""The service as a pure, synchronous machine: a request and the time go in, an answer and effects come out.

No I/O, no clock, no chance of its own: identifiers come from a seeded generator. Not safe for threads by
itself; `Sandbox` holds a lock around it. The order of decisions is `Core._serve`, top to bottom.
"""

from __future__ import annotations

import attrs
from msgspec.structs import replace

from .._checkout import ACTIONS, PAGES, answer_payer
from .._common.clock import Chance
from .._common.json import decode_object
from .._common.operations import ServiceOperation, find_operation
from .._common.profiles import Profile
from .._common.rate_limits import SandboxLimits
from .._common.scenario_words import Fault
from .._common.timestamps import http_date
from .._common.values import Answer, Effect, LoggedRequest, Request, RequestRefused
from .._records.emit_webhook import as_created
from .._records.idempotency import idempotency_key
from .._records.records import PayoutRecord
from .._records.tenants import Tenant, authenticate
from .._records.world import World
from .call import ServiceCall
from .fault_rules import Rule, ScenarioSource
from .faults import after, before
from .handlers import HANDLERS, HandlerReply, created_reply
from .paging import read_parameters
from .responses import distort, json_answer, limited, refusal, reused_key
from .scenario_lookup import find_sources, pick_fault

_IN_FLIGHT = "The request with this idempotency key is still being worked on."


@attrs.define
class _Note:
    operation: ServiceOperation | None = None
    tenant: Tenant | None = None
    fault: Fault | None = None
    replayed: bool = False


class Core:
    """The state of one simulated service, and its handling of requests."""

    def __init__(self, profile: Profile, limits: SandboxLimits, seed: int) -> None:
        self.world: World = World(profile, _limits_under(profile, limits), Chance(seed))
        self.rules: list[Rule] = []
        """Control rules, the oldest first; the first that matches wins."""
        self.default: Rule | None = None
        """The scenario of requests and records that nothing else decides."""
        self.served: int = 0  # how many requests to the API were answered

    def due(self, now: float) -> list[Effect]:
        """Carry out what falls due until `now` (seconds since 1970) and give the effects in order."""
        self.world.run_due(round(now, 6))
        return self.world.take_effects()

    def handle(self, request: Request, now: float) -> tuple[Answer, list[Effect]]:
        """Answer a request that arrives at `now`; the effects include what fell due before it."""
        self.world.run_due(round(now, 6))
        if request.path.startswith((PAGES, ACTIONS)):
            return answer_payer(self.world, request), self.world.take_effects()
        note = _Note()
        try:
            answer = self._serve(request, note)
        except RequestRefused as refused:
            answer = refusal(refused, self.world.profile)
        self.served += 1
        request_id = f"req_{self.served:08d}"
        profile, headers = self.world.profile, {**answer.headers}
        if profile.request_ids:
            headers["X-Request-Id"] = request_id
        headers["Date"] = http_date(int(self.world.now)) if profile.dates else ""
        answer = replace(answer, headers=headers)
        self.world.add_effect(self._log(request_id, request, answer, note))
        return answer, self.world.take_effects()

    def _serve(self, request: Request, note: _Note) -> Answer:
        note.tenant = authenticate(request.headers.get("authorization"), request.address, self.world.tenants)
        matched = find_operation(request.method, request.path)
        if matched is None:
            raise RequestRefused(404, f"There is nothing at {request.method} of this address.")
        note.operation, path_values = matched
        call = ServiceCall(request, self.world.now, note.tenant, note.operation, path_values)
        self._admit(call)
        self._read(call)
        sources = find_sources(call, self.rules, magic=self.world.profile.magic)
        if self.default is not None:
            sources.append(self.default)
        note.fault = fault = pick_fault(sources)
        if fault is None:
            return self._once(call, sources, note)
        if fault.kind == "429":
            raise self._limited(0, fault.seconds)
        return before(fault) or after(fault, self._once(call, sources, note, late=fault.seconds))

    def _admit(self, call: ServiceCall) -> None:
        operation = call.operation
        record_id = call.path_values[operation.record] if operation.record else None
        excess = call.tenant.limits.admit(operation.limit, record_id, self.world.now)
        if excess is not None:
            raise self._limited(excess.limit, excess.wait)

    def _limited(self, limit: int, wait: float) -> RequestRefused:
        return limited(self.world.profile, self.world.now, limit, wait)

    def _read(self, call: ServiceCall) -> None:
        request = call.request
        if request.query:
            call.parameters = read_parameters(request.query)
        if request.method == "POST":
            call.idempotency_key = idempotency_key(
                request.headers.get("x-idempotency-key"), self.world.profile.bad_key_status
            )
            if request.body or call.operation.creates:
                call.body = decode_object(request.body)

    def _once(
        self, call: ServiceCall, sources: list[ScenarioSource], note: _Note, late: float = 0.0
    ) -> Answer:
        """Carry the operation out, unless its idempotency key has an answer already.

        For `late` seconds, in which a fault holds the answer back, the key is in flight.
        """
        key, now, profile = call.idempotency_key, self.world.now, self.world.profile
        if key is None:
            return self._run(call, sources)[0]
        stored = call.tenant.replies.find(key, now)
        if stored is not None:
            # the answer of the service, also to a refused repeat: a fault of the line comes after it
            if stored.request != call.fingerprint and (refused := reused_key(profile)):
                return refusal(refused, profile)
            if now < stored.at + stored.late and profile.in_flight == "conflict":
                return refusal(RequestRefused(409, _IN_FLIGHT), profile)
            note.replayed = True
            first = stored.answer
            if not isinstance(first, Answer):
                first = self._success(created_reply(as_created(first)))
            return replace(first, headers={**first.headers, "X-Idempotent-Replayed": "true"})
        answer, payout = self._run(call, sources)
        # Gap S: 400, 401, 403, 428, 429 and faults never come this far; a repeat after them is a new request
        if answer.status < 400 or profile.keeps_refusals:
            call.tenant.replies.keep(key, call.fingerprint, payout or answer, now, late)
        return answer

    def _run(self, call: ServiceCall, sources: list[ScenarioSource]) -> tuple[Answer, PayoutRecord | None]:
        """Carry the operation out; gives the answer, and the payout that says the same as it."""
        try:
            reply = HANDLERS[call.operation.name](self.world, call, sources)
        except RequestRefused as refused:
            return refusal(refused, self.world.profile), None
        return self._success(reply), reply.payout

    def _success(self, reply: HandlerReply) -> Answer:
        profile = self.world.profile
        body = distort(reply.body, profile) if profile.distorts else reply.body
        return json_answer(profile.create_status if reply.created else 200, body)

    def _log(self, request_id: str, request: Request, answer: Answer, note: _Note) -> LoggedRequest:
        headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        return LoggedRequest(
            at=self.world.now,
            request_id=request_id,
            method=request.method,
            path=f"{request.path}?{request.query}" if request.query else request.path,
            operation=note.operation.name if note.operation else None,
            status=answer.status,
            idempotency_key=headers.get("x-idempotency-key"),
            replayed=note.replayed,
            fault=note.fault.word if note.fault else None,
            key=note.tenant.fingerprint if note.tenant else None,
            headers=headers,
        )


def _limits_under(profile: Profile, limits: SandboxLimits) -> SandboxLimits:
    """Complete the limits by the profile (gap Z, and sliding windows)."""
    if profile.sliding_windows:
        limits = attrs.evolve(limits, window="sliding")
    if limits.refund_availability is None and limits.reads is not None:
        limits = attrs.evolve(limits, refund_availability=profile.refund_limit)
    return limits
