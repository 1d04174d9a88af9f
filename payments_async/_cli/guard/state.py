"""The guard of a command: its file, its rules in words, and what its state has of each sum."""

from __future__ import annotations

import os
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._guard._state.compare_and_set import LimitStore
from ..._guard._state.store_client import StoreClient, open_store
from ..._guard.budget_client import BudgetClient
from ..._guard.key_guard import KeyGuard
from ..._http.addresses import normal
from ..._http.types import Secret
from ..._request.auth import check_base_url, read_key
from ..._runtime import SYSTEM
from ...bulk._texts.quantities import money_text
from ...guard import Guard, Sum, window_name
from ...models.common import amount_text
from .._exit_codes import CommandEnded, Exit
from .._text import print_message

VARIABLE: Final = "PAYMENTS_GUARD"
_SQLITE: Final = "sqlite:"
BEGIN: Final = "`payments guard begin`"
Account = tuple[str, str]
"""The service's normalised address, and the key's fingerprint."""
NOBODY: Final[Account] = ("", "")
"""For rules alone."""


def guard_file(given: str | None, environ: Mapping[str, str]) -> str:
    """The path of the guard's file. Raises CommandEnded without one."""
    path = given or environ.get(VARIABLE)
    if not path:
        raise CommandEnded(f"no guard: give its file with --guard, or set {VARIABLE} to it", Exit.USAGE)
    return path


def account_of(given: Mapping[str, str]) -> Account:
    """The account of the environment's key. Raises ConfigurationError."""
    fingerprint = read_key(given.get("PAYMENTS_API_KEY")).fingerprint
    return normal(check_base_url(given.get("PAYMENTS_BASE_URL"))), fingerprint


def rule_texts(guard: Guard) -> list[tuple[str, str]]:
    """Each rule that is set, but the sums: its name and what it says."""
    others = "pass" if guard.other_currencies == "allow" else "are refused"
    most = f"{money_text(guard.most)} a payout" if guard.most else "no figure"
    texts = [
        ("Most", f"{most}; other currencies {others}"),
        ("Methods", ", ".join(sorted(guard.methods or ()))),
        ("Countries", ", ".join(sorted(guard.countries or ()))),
        ("Decimals", "as many as ISO 4217 gives the currency" if guard.decimals else "any number"),
        ("Collecting", "checkouts and payment intents are judged, too" if guard.collecting else ""),
        ("Writes", "to any path" if guard.other_writes == "allow" else ""),
    ]
    return [(name, text) for name, text in texts if text]


def sum_text(each: Sum) -> str:
    """`GHS 50,000 in one hour`."""
    return f"{amount_text(each.currency, each.most)} in {window_name(each.seconds)}"


@attrs.frozen
class SumFigures:
    """What the state has of one sum."""

    limit: Sum
    paid: Decimal
    """Within the window."""
    held: Decimal
    """Reserved, without an outcome."""
    wait: float
    """Seconds until the state is trusted; 0.0 if it is."""

    @property
    def left(self) -> Decimal:
        """What may still be reserved."""
        return max(self.limit.most - self.paid - self.held, Decimal(0))

    def facts(self) -> dict[str, Any]:
        """The same for programs."""
        amounts = {"most": self.limit.most, "paid": self.paid, "held": self.held, "left": self.left}
        texts = {name: f"{amount:f}" for name, amount in amounts.items()}
        trusted = {"trusted": not self.wait, "trusted_in": round(self.wait, 1)}
        return {"currency": self.limit.currency, "seconds": self.limit.seconds, **texts, **trusted}


@attrs.frozen(eq=False)
class GuardState:
    """The state of a guard's sums. Its methods raise StoreUnavailable and ConfigurationError."""

    _sums: BudgetClient
    _store: StoreClient

    @property
    def place(self) -> str:
        """Where it is: a file's path, or `the limit store`, whose address may hold a password."""
        is_file = self._store.address.startswith(_SQLITE)
        return self._store.address.removeprefix(_SQLITE) if is_file else "the limit store"

    @property
    def is_missing(self) -> bool:
        """True for a file that nobody has made yet: reading would make it."""
        return self._store.address.startswith(_SQLITE) and not os.path.exists(self.place)

    async def read(self) -> tuple[list[SumFigures], Sequence[Mapping[str, Any]]]:
        """The figures of each sum, and the last refusals, the newest last."""
        limits = [
            Sum(name, most, seconds) for name, sums in self._sums.limits.items() for seconds, most in sums
        ]
        async with self._opened() as store:
            used, refusals = await self._sums.show(store)
        return [_figures(limit, each) for limit, each in zip(limits, used, strict=True)], refusals

    async def begin(self) -> None:
        """Trust all windows from now on."""
        async with self._opened() as store:
            await self._sums.begin(store)

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[LimitStore]:
        client = self._store
        store = open_store(client.address, insecure_database=client.insecure_database)
        try:
            yield store
        finally:
            await store.aclose()


def _figures(limit: Sum, used: Sequence[Any]) -> SumFigures:
    paid, held, known_from, now = used
    return SumFigures(limit, Decimal(paid), Decimal(held), max(known_from - now, 0.0))


def joined(
    guard: Guard, account: Account, limit_store: str | None, *, insecure_database: bool = False
) -> tuple[KeyGuard, GuardState | None]:
    """The guard for an account, and the state of its sums if it is kept anywhere. Nothing is opened.

    The guard is not that of the process's clients. Its warnings are printed. Raises ConfigurationError.
    """
    made: list[StoreClient] = []

    def client_of(address: Secret) -> StoreClient:
        made.append(StoreClient(address, SYSTEM, insecure_database=insecure_database))
        return made[0]

    key_guard = KeyGuard(account, SYSTEM)
    with warnings.catch_warnings(record=True, action="always") as warned:
        key_guard.join(guard, None if limit_store is None else Secret(limit_store), client_of)
    for each in warned:
        print_message(str(each.message))
    return key_guard, None if key_guard.client is None else GuardState(key_guard.client, made[0])
