"""The handle: one simulated service with its address, its controls and its books."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Self

import attrs

from . import _control
from ._books import Books, PaymentEntry, payment_entry
from ._clock import Clock, VirtualClock, real_seconds
from ._console import PREFIX as CONSOLE
from ._console import answer_console
from ._core import Core
from ._default import default_scenario
from ._deliver import Door, Wires
from ._journal import Entry, Journal
from ._limits import SandboxLimits
from ._operations import PREFIX
from ._profiles import Profile, profile_named
from ._rule import Rule, check_operation
from ._server import HOST, Server, check_port
from ._tenants import KeyStatus, fingerprint_of
from ._tried import tried
from ._values import Answer, Change, Delivery, Effect, LoggedRequest, Notice, Request, Stream
from ._world import World
from .webhooks import Webhook, WebhookTry
from .webhooks._controls import WebhookControls
from .webhooks._guard import NotSent, read_allowed
from .webhooks._mailroom import Mailroom

if TYPE_CHECKING:
    from ._state import Keeper

KEPT = 20_000
"""How many of the latest requests are kept."""


class Sandbox(WebhookControls):
    """An embedded payment service: stateful, deterministic, offline (`docs/interface.md`, gaps filled in).

    `profile` fills the gaps: `observed`, `hostile` or a `Profile`. `limits` are requests per minute. `seed`
    fixes every identifier. `clock` is the machine's time unless given. `port` is a free one below 32768
    unless given. Webhooks go to this machine, to private networks and to `.test` names (which are this
    machine), to no other host unless it is named in `allow_webhooks_to`.

    `scenario` is words for the requests and records that nothing else decides, such as `slow:200ms` or
    `fail:RECIPIENT_ERROR after=10s`; `UnknownWord` for another. `state` is a file in which records, keys,
    idempotency keys, timers and waiting webhooks outlive the sandbox; written by `save`, by `stop`, and every
    two seconds in between while it serves. `StateError` when it cannot be used.

    HTTP is served, and webhooks leave, inside `with` or `async with`; `handle` needs neither. Every method
    may be called from any thread. A session's `checkout.url` leads to a page where a person pays or declines,
    as `pay` does, and lands on the `return_url` either way; that address gets no addition, because arrival
    proves nothing.
    """

    def __init__(
        self,
        *,
        profile: str | Profile = "observed",
        limits: SandboxLimits | None = None,
        seed: int = 0,
        clock: Clock | None = None,
        port: int | None = None,
        allow_webhooks_to: Iterable[str] = (),
        scenario: str | None = None,
        state: str | PathLike[str] | None = None,
    ) -> None:
        if limits is not None and not isinstance(limits, SandboxLimits):
            raise TypeError(f"limits must be SandboxLimits, not {type(limits).__name__}")
        check_port(port)
        chosen = profile_named(profile) if isinstance(profile, str) else profile
        self.clock: Clock = clock or VirtualClock.real()
        self._core = Core(chosen, limits or SandboxLimits(), seed)
        self._profile = chosen
        self._rules_made = 0
        self._port = port
        self._allowed = read_allowed(allow_webhooks_to)
        self._server: Server | None = None
        self._lock = threading.RLock()
        self._requests: deque[LoggedRequest] = deque(maxlen=KEPT)
        self._mail = Mailroom(self._lock)
        self._journal = Journal()
        self.books: Books = Books(self.present)
        self._core.default = default_scenario(scenario)
        self._keeper: Keeper | None = None
        self._changed = False
        self.api_key: str = self._resume(state) if state is not None else self.new_key()

    @property
    def base_url(self) -> str:
        """The address to give to a client, version prefix included; `RuntimeError` when it is not serving."""
        if self._server is None:
            raise RuntimeError("the sandbox is not serving; enter it: `with Sandbox() as sandbox:`")
        return f"http://{HOST}:{self._server.port}{PREFIX}"

    @property
    def origin(self) -> str:
        """The address of the server, without a path; `http://sandbox.test` before it serves."""
        return self._core.world.origin

    @property
    def profile(self) -> Profile:
        """How the gaps of the interface are filled."""
        return self._profile

    @property
    def requests(self) -> list[LoggedRequest]:
        """The latest requests to the API, oldest first (20,000 at most), without their Authorization headers.

        Visits to a hosted page are not among them.
        """
        with self.present():
            return list(self._requests)

    @property
    def unused_rules(self) -> list[Rule]:
        """The rules set with `on` that have not been used up."""
        with self._lock:
            return [rule for rule in self._core.rules if not rule.is_used_up]

    @property
    def journal(self) -> Journal:
        """Requests with their bodies, changes and deliveries by sequence number; read it with `entries`."""
        return self._journal

    def entries(self, after: int = 0, limit: int | None = None) -> list[Entry]:
        """The journal's entries after a number, oldest first; with `limit` the newest so many of them."""
        with self.present():
            return self._journal.since(after, limit)

    def new_key(self, status: KeyStatus = "active", allowlist: Iterable[str] | None = None) -> str:
        """A new sandbox key with a tenant of its own.

        `status` is `active`, `inactive` or `expired`; `allowlist` holds addresses and networks
        (`10.0.0.0/8`), None for all. `ValueError` for one that cannot be read.
        """
        with self.present() as world:
            return world.add_tenant(status, None if allowlist is None else tuple(allowlist))

    def on(self, operation: str, *, api_key: str | None = None, **match: object) -> Rule:
        """A rule for the requests of `operation`: a name such as `payouts.create`, or a glob (`payouts.*`).

        `match` compares path, query and body values by name, `metadata__order="7"` for nested ones; `api_key`
        narrows the rule to one tenant. Earlier rules come first. `ValueError`, naming what is near, for an
        unknown operation.
        """
        check_operation(operation)
        with self._lock:
            self._rules_made += 1
            name = f"rule_{self._rules_made}"
            rule = Rule(operation, match, fingerprint_of(api_key) if api_key else None, name)
            self._core.rules.append(rule)
        return rule

    @property
    def rules(self) -> list[Rule]:
        """The rules set with `on`, used up or not, the one that counts first in front."""
        with self._lock:
            return list(self._core.rules)

    def remove_rule(self, rule: Rule | str) -> None:
        """Forget one rule, or the one with this `id`; `LookupError` when it is not set."""
        name = rule if isinstance(rule, str) else rule.id
        with self._lock:
            kept = [known for known in self._core.rules if known.id != name]
            if len(kept) == len(self._core.rules):
                raise LookupError(f"no rule {name!r}")
            self._core.rules[:] = kept

    def clear_rules(self) -> None:
        """Forget every rule set with `on`."""
        with self._lock:
            self._core.rules.clear()

    def reset(self) -> None:
        """Start over: no records, rules, timers, counts or journal. Keys and the time stay as they are."""
        with self._lock:
            self._changed = True
            self._core.world.reset()
            self._core.rules.clear()
            self._requests.clear()
            self._mail.clear()
            self._journal.clear()

    def advance(self, seconds: float) -> list[Change]:
        """Skip `seconds` of sandbox time ahead; gives what fell due on the way, in order.

        While it serves, the tries of webhooks that are due with it leave now, and are reported too.
        """
        with self._lock:  # so that no request in between takes what fell due out of the report
            self._changed = True
            self.clock.advance(seconds)
            effects = self._core.due(self.clock.now())
            self._keep(effects)
            fired = self._mail.fired(self._core.world.now)
            self._poke()
        changes = [effect for effect in effects if isinstance(effect, Change)]
        return sorted([*changes, *fired], key=lambda change: change.at) if fired else changes

    def pay(
        self,
        payment_id: str,
        *,
        method: str = _control.USUAL_METHOD,
        phone: str | None = None,
        country: str | None = None,
        outcome: str | None = None,
    ) -> PaymentEntry:
        """A simulated payer pays a payment, named by its own id or its checkout session's.

        Creates an attempt with `method` and ends it at once, or acts on the attempt that is waiting.
        `outcome` is scenario words such as `fail:CUSTOMER_DECLINED` or `action:collect_otp`; without it the
        creation's scenario decides, and else the payment completes. `LookupError` for an unknown id;
        `ValueError` when the payment is not open, or the session is locked to another country or phone.
        """
        with self.present() as world:
            payment = _control.pay(
                world, payment_id, method=method, phone=phone, country=country, outcome=outcome
            )
            return payment_entry(payment)

    def settle(self, record_id: str, outcome: str = "complete") -> None:
        """End a payout, attempt, payment or pending refund now: `complete`, `fail:CODE` or `expire`.

        `LookupError` for an unknown id, `ValueError` for a record that is final or cannot end so.
        """
        with self.present() as world:
            _control.settle(world, record_id, outcome)

    def hold(self, record_id: str) -> None:
        """A payout or attempt that is under way stays as it is until it is settled.

        `LookupError` for an unknown id, `ValueError` for a record that cannot end any more or has no attempt.
        """
        with self.present() as world:
            _control.hold(world, record_id)

    def refund(self, payment_id: str, amount: Decimal | None = None, *, pending: bool = False) -> str:
        """Refund a completed payment from behind the API and give the refund's id.

        `amount` is in major units, all that is left when None; `pending` leaves it in flight until `settle`.
        `ValueError` when the amount exceeds what is left.
        """
        with self.present() as world:
            return _control.refund(world, payment_id, amount, pending=pending).id

    def handle(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        address: str = "127.0.0.1",
    ) -> Answer:
        """Answer one request in the caller's thread; `answer.fault` says how the line should misbehave.

        `path` is as on the wire, with the version prefix and the query string: `/v1/payouts?per_page=2`. The
        hosted page is at `/checkout/{id}`, the inspector at `/_sandbox/`; its live stream needs `start`.
        """
        plain, _, query = path.partition("?")
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        request = Request(method, plain, query, lowered, body or b"", address)
        answer = self._serve(request)
        if isinstance(answer, Stream):
            raise ValueError(f"{plain} is a stream that never ends; read it over HTTP")
        return answer

    def start(self) -> None:
        """Serve HTTP until `stop`; `OSError` when the port is taken, `RuntimeError` when serving already."""
        if self._server is not None:
            raise RuntimeError("the sandbox is serving already")
        if self._keeper is not None and self._keeper.is_over:
            raise RuntimeError("the sandbox has left its state file; make another Sandbox")
        wires = Wires(self._take, self._report, self._put_back, self.clock.now, self.clock.sleep)
        door = Door(wires, self._allowed)
        server = Server(self._serve, self.clock.sleep, self._port, door)
        self._core.world.origin = f"http://{HOST}:{server.port}"
        server.start()
        self._server, self._mail.poke = server, door.poke
        door.poke()
        if self._keeper is not None:
            self._keeper.start()

    def stop(self) -> None:
        """Stop serving; the state stays. Without effect when it does not serve.

        With a state file it writes and leaves that, too, serving or not; `StateError` when it cannot.
        """
        server, self._server, self._mail.poke = self._server, None, None
        if server is not None:
            server.stop()
        if self._keeper is not None:
            self._keeper.stop()

    def save(self) -> None:
        """Write the state file now; `StateError` when it cannot be, `RuntimeError` without one."""
        if self._keeper is None:
            raise RuntimeError("this sandbox has no state file: Sandbox(state=...)")
        self._keeper.save()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        # Blocks for the milliseconds a thread and a loop take to start.
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        address = "not serving" if self._server is None else repr(self.base_url)
        return f"{type(self).__name__}({address}, profile={self._profile.name!r})"

    def _serve(self, request: Request) -> Answer | Stream:
        """Answer what came in: for the console the pages and controls, for the API the core."""
        return answer_console(self, request) if request.path.startswith(CONSOLE) else self._answer(request)

    def send_again(self, request: Request, key: str) -> LoggedRequest:
        """Send a request with the API key of fingerprint `key` and give its log line; `LookupError`."""
        with self._lock:
            keys = [name for name, tenant in self._core.world.tenants.items() if tenant.fingerprint == key]
            if not keys:
                raise LookupError(f"no API key {key!r}")
            headers = {**request.headers, "authorization": f"Bearer {keys[0]}"}
            self._answer(attrs.evolve(request, headers=headers))
            return self._requests[-1]

    def _resume(self, path: str | PathLike[str]) -> str:
        """Go on from the state in the file, or begin one; gives the first API key."""
        from ._snapshot import thaw  # together 10 ms, for those who keep a state
        from ._state import Keeper, StateFile

        file = StateFile(path)
        found = file.read(partial(thaw, self._core))
        self._keeper = Keeper(file, self._freeze)
        if found is None:
            return self.new_key()
        self._mail.courier, key, then = found
        self._mail.courier.put_back(then)
        self.clock.advance(max(0.0, then - self.clock.now()))  # time does not go back
        return key

    def _freeze(self, anyhow: bool) -> bytes | None:
        """The state for the file; None when nothing has happened since the last one, unless `anyhow`."""
        from ._snapshot import freeze

        with self._lock:
            if not (self._changed or anyhow):
                return None
            self._keep(self._core.due(self.clock.now()))
            self._changed = False
            return freeze(self._core, self._mail.courier, self.api_key, self.clock.now())

    def _answer(self, request: Request) -> Answer:
        with self._lock:
            self._changed = True
            answer, effects = self._core.handle(request, self.clock.now())
            if effects and isinstance(logged := effects[-1], LoggedRequest):
                awaits = self._keep(effects[:-1])
                self._requests.append(logged)
                self._journal.add_exchange(logged, real_seconds(), request.body, answer)
            else:
                awaits = self._keep(effects)
        return attrs.evolve(answer, awaits=awaits) if awaits else answer

    @contextmanager
    def present(self) -> Iterator[World]:
        """The sandbox's insides as of now, for one thread at a time: for the inspector, not for tests."""
        with self._lock:
            self._changed = True
            self._keep(self._core.due(self.clock.now()))
            try:
                yield self._core.world
            finally:
                self._keep(self._core.world.take_effects())

    def _keep(self, effects: Sequence[Effect]) -> tuple[str, ...]:
        """Sort what the core told; gives the webhooks that the request's answer waits for."""
        awaits: list[str] = []
        for effect in effects:
            if isinstance(effect, Notice):  # nothing that happened: nobody is told
                self._mail.inbox.append(effect)
                continue
            self._journal.add(effect)
            if isinstance(effect, Delivery) and (webhook_id := self._mail.keep(effect)):
                awaits.append(webhook_id)
        if effects and self._core.world.has_receivers:
            self._poke()
        return tuple(awaits)

    def _take(self, room: int) -> tuple[list[Webhook], float | None]:
        """What the door is to send now, and in how many seconds there may be more."""
        with self.present() as world:
            webhooks = self._mail.take(world.now, room)
            moments = [self._mail.courier.next_at if room > len(webhooks) else None]
            moments.append(world.next_at if world.has_receivers else None)
            due = min((moment for moment in moments if moment is not None), default=None)
            return webhooks, None if due is None else due - world.now

    def _report(self, webhook_id: str, result: WebhookTry | NotSent) -> None:
        with self._lock:
            self._changed = True
            self._mail.reported(webhook_id, result)
            if webhook_id in self._mail.courier:
                self._journal.add(tried(self._mail.courier.find(webhook_id), result, self._core.world.now))

    def _put_back(self) -> None:
        with self._lock:
            self._mail.courier.put_back(self._core.world.now)
