"""What one test sees of a sandbox that it shares with others: a key, rules, books and a log of its own."""

from __future__ import annotations

from decimal import Decimal

from payments_async.sandbox import Books, Change, Delivery, LoggedRequest, PaymentEntry, Rule, Sandbox
from payments_async.sandbox._control import USUAL_METHOD
from payments_async.sandbox._tenants import KeyStatus, fingerprint_of

from ._clock import SandboxClock
from ._ledger import Finding, evidence, findings
from ._log import request_log


class SandboxTenant:
    """A fresh tenant of a serving sandbox, with the sandbox's own methods, narrowed to its keys.

    Time is the service's, and shared. `close` takes its rules back; its records stay where nobody sees them.
    """

    def __init__(self, service: Sandbox) -> None:
        """Args:
        service: the sandbox; serving, for `base_url`.
        """
        self.service: Sandbox = service
        """The whole service."""
        self._since = service.journal.last
        self._rules: list[Rule] = []
        self._keys: set[str] = set()
        self.api_key: str = self.new_key()
        self.clock: SandboxClock = SandboxClock(service)
        self.books: Books = Books(service.present, self._keys)
        """What this tenant's keys created, whatever the caller was told."""

    @property
    def base_url(self) -> str:
        """The address to give to a client; `RuntimeError` when the service is not serving."""
        return self.service.base_url

    def new_key(self, status: KeyStatus = "active") -> str:
        """One more key, with records of its own; `inactive` and `expired` ones are refused."""
        key = self.service.new_key(status)
        self._keys.add(fingerprint_of(key))
        return key

    def on(self, operation: str, *, api_key: str | None = None, **match: object) -> Rule:
        """A rule for this tenant's requests, or those of another of its keys; see `Sandbox.on`."""
        rule = self.service.on(operation, api_key=api_key or self.api_key, **match)
        self._rules.append(rule)
        return rule

    @property
    def unused_rules(self) -> list[Rule]:
        """The rules set with `on` that have not been used up."""
        return [rule for rule in self.service.unused_rules if rule in self._rules]

    @property
    def requests(self) -> list[LoggedRequest]:
        """Its requests, oldest first."""
        return [request for request in self.service.requests if request.key in self._keys]

    @property
    def deliveries(self) -> list[Delivery]:
        """The webhooks that were due for its records, oldest first."""
        ids = {entry.id for entry in self.books.payouts()} | {entry.id for entry in self.books.payments()}
        return [delivery for delivery in self.service.deliveries if delivery.record_id in ids]

    def advance(self, seconds: float) -> list[Change]:
        """Skip ahead; gives what fell due on the way, for whoever, in order."""
        return self.service.advance(seconds)

    def pay(
        self,
        payment_id: str,
        *,
        method: str = USUAL_METHOD,
        phone: str | None = None,
        country: str | None = None,
        outcome: str | None = None,
    ) -> PaymentEntry:
        """A simulated payer pays; see `Sandbox.pay`."""
        return self.service.pay(payment_id, method=method, phone=phone, country=country, outcome=outcome)

    def settle(self, record_id: str, outcome: str = "complete") -> None:
        """End a record now: `complete`, `fail:CODE` or `expire`; see `Sandbox.settle`."""
        self.service.settle(record_id, outcome)

    def refund(self, payment_id: str, amount: Decimal | None = None, *, pending: bool = False) -> str:
        """Refund a completed payment from behind the API; see `Sandbox.refund`."""
        return self.service.refund(payment_id, amount, pending=pending)

    def findings(self) -> list[Finding]:
        """What was done that no program should do with money, since this tenant was made."""
        entries = self.service.entries(self._since)
        books = self.books
        return findings(evidence(entries, frozenset(self._keys), books.payouts(), books.payments()))

    def request_log(self) -> str:
        """Its latest requests as lines, account data masked."""
        return request_log(self.service.entries(self._since), self._keys)

    def close(self) -> None:
        """Take back the rules that are still set."""
        known = self.service.rules
        for rule in self._rules:
            if rule in known:
                self.service.remove_rule(rule)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.service!r}>"
