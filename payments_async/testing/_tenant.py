"""The shared sandbox as one test uses it: its keys, rules, books and log."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from ..sandbox import Books, Change, Clock, Delivery, LoggedRequest, PaymentEntry, Rule, Sandbox, Webhook
from ..sandbox._journal import Item, JournalEntry, LoggedExchange
from ..sandbox._record_actions import USUAL_METHOD
from ..sandbox._records.tenants import KeyStatus, fingerprint_of
from ..sandbox.advisor import Finding, advise
from ._request_log import request_log


class SandboxClock:
    """The clock of a sandbox. It runs with the machine's, and can be advanced."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    def now(self) -> datetime:
        """The sandbox's time, UTC."""
        return datetime.fromtimestamp(self._sandbox.clock.now(), UTC)

    def advance(self, by: float | timedelta) -> list[Change]:
        """Skip ahead, in seconds or by a timedelta. Returns the changes that became due, in order.

        Raises ValueError when negative.
        """
        return self._sandbox.advance(by.total_seconds() if isinstance(by, timedelta) else by)


class SandboxTenant:
    """A fresh tenant of a serving sandbox, with the sandbox's own methods, narrowed to its keys.

    Time is the service's, and shared. `close` takes its rules back and revokes its keys; its records stay.
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
        """Fingerprints."""
        self._api_keys: list[str] = []
        self.api_key: str = self.new_key()
        self.clock: Clock = service.clock
        self.books: Books = Books(service.changing, self._keys)
        """The records that this tenant's keys created, with or without an answer to the caller."""

    @property
    def base_url(self) -> str:
        """The base URL for clients. Raises RuntimeError when the service is not serving."""
        return self.service.base_url

    def new_key(self, status: KeyStatus = "active") -> str:
        """One more key, with records of its own; `inactive` and `expired` ones are refused."""
        key = self.service.new_key(status)
        self._keys.add(fingerprint_of(key))
        self._api_keys.append(key)
        return key

    def revoke_key(self, api_key: str, reason: str = "The API key was revoked.") -> None:
        """Refuse one of the tenant's keys from now on: 401 with `reason`; see `Sandbox.revoke_key`."""
        self.service.revoke_key(api_key, reason)

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
        """The tenant's requests, oldest first."""
        return [request for request in self.service.requests if request.key in self._keys]

    @property
    def deliveries(self) -> list[Delivery]:
        """The webhooks that were due for the tenant's records, oldest first."""
        ids = self._ids()
        return [delivery for delivery in self.service.deliveries if delivery.record_id in ids]

    @property
    def webhooks(self) -> list[Webhook]:
        """Each delivery about the tenant's records, with its state and attempts, oldest first."""
        ids = self._ids()
        return [webhook for webhook in self.service.webhooks if webhook.record_id in ids]

    def wait_for_webhooks(self, timeout: float = 10.0) -> None:
        """Return once every delivery due by now was tried; see `Sandbox.wait_for_webhooks`."""
        self.service.wait_for_webhooks(timeout)

    def resend(self, webhook_id: str) -> Webhook:
        """Send a delivery once more; `LookupError`. See `Sandbox.resend`."""
        return self.service.resend(webhook_id)

    def forge(self, record_id: str, event: str | None = None, *, url: str | None = None) -> Webhook:
        """Send a false delivery. Raises LookupError, ValueError. See `Sandbox.forge`."""
        return self.service.forge(record_id, event, url=url)

    def entries(self) -> list[JournalEntry]:
        """The journal's entries on the tenant's requests and records, oldest first, such as for `advise`."""
        ids = self._ids()
        entries = self.service.entries(self._since)
        return [entry for entry in entries if _is_about(entry.item, self._keys, ids)]

    def advance(self, seconds: float) -> list[Change]:
        """Skip ahead. Returns the changes that became due, for all tenants, in order."""
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
        """Pay as a simulated payer; see `Sandbox.pay`."""
        return self.service.pay(payment_id, method=method, phone=phone, country=country, outcome=outcome)

    def settle(self, record_id: str, outcome: str = "complete") -> None:
        """End a record now: `complete`, `fail:CODE` or `expire`; see `Sandbox.settle`."""
        self.service.settle(record_id, outcome)

    def refund(
        self, payment_id: str, amount: Decimal | int | str | None = None, *, pending: bool = False
    ) -> str:
        """Refund a completed payment from behind the API; see `Sandbox.refund`."""
        return self.service.refund(payment_id, amount, pending=pending)

    def findings(self) -> list[Finding]:
        """The faults in the handling of money since this tenant was made."""
        return advise(self.entries(), self.service.clock.now())

    def request_log(self) -> str:
        """The tenant's latest requests as lines, account data masked."""
        return request_log(self.service.entries(self._since), self._keys)

    def close(self, reason: str = "The API key is that of a SandboxTenant that was closed.") -> None:
        """Remove the rules that are still set and revoke the keys: a later request gets a 401.

        `reason` is the message of that 401.
        """
        for key in self._api_keys:
            self.service.revoke_key(key, reason)
        known = self.service.rules
        for rule in self._rules:
            if rule in known:
                self.service.remove_rule(rule)

    def _ids(self) -> set[str]:
        """The ids of the tenant's payouts, payments and attempts."""
        with self.service.changing() as world:
            return {
                record_id
                for tenant in world.tenants.values()
                if tenant.fingerprint in self._keys
                for records in (tenant.payouts_by_id, tenant.payments_by_id, tenant.attempts)
                for record_id in records
            }

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.service!r}>"


def service_of(sandbox: SandboxTenant | Sandbox) -> Sandbox:
    """The whole service behind a test's sandbox."""
    return sandbox.service if isinstance(sandbox, SandboxTenant) else sandbox


def _is_about(item: Item, keys: Collection[str], ids: Collection[str]) -> bool:
    """Return whether an item is a request with one of the keys, or an event of one of the records."""
    if isinstance(item, LoggedExchange):
        return item.log.key in keys
    return (item.id if isinstance(item, Change) else getattr(item, "record_id", None)) in ids
