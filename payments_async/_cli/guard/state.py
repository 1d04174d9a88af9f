"""The guard of a command: its file, its rules in words, and what its state has of each sum."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import attrs

from ..._guard.key_guard import GuardOwner, KeyGuard
from ..._guard.state import StateUnavailable
from ..._guard.sums import GuardSums, SumFigures
from ..._http.addresses import normal
from ..._request.auth import check_base_url, read_key
from ..._request.settings import variables
from ..._runtime import SYSTEM
from ...bulk._texts.quantities import duration_text, money_text
from ...guard import Guard, Sum, window_name
from ...models.common import amount_text, grouped
from .._exit_codes import CommandEnded, Exit
from .._output import Show, show_for
from .._text import print_message

VARIABLE: Final = "PAYMENTS_GUARD"
BEGIN: Final = "`payments guard begin`"
_HELD: Final = (
    "no outcome is known yet: under way, in doubt, or of a process that was killed. It counts for the length "
    "of the window and 16 minutes, from its last reservation on"
)


def begin(path: str | None, *, again: bool, insecure_database: bool, as_json: bool) -> Exit:
    """Trust the state from now on. Raises CommandEnded, ConfigurationError."""
    path, guard = _read(path)
    state = _state_of(guard, insecure_database=insecure_database)
    if state is None:
        why = "its sums are kept by each process" if guard.sums else "it has no sums"
        raise CommandEnded(f"{path}: there is no state to begin: {why}", Exit.USAGE)
    is_begun = again or state.wait() != 0
    if is_begun:
        state.begin()
    sums = ", ".join(map(sum_text, guard.sums))
    text = "and trusted from now on; what was paid before is not counted"
    if not is_begun:
        text = "and trusted already: nothing was changed (--again begins it anew)"
    show = show_for(as_json=as_json)
    show.heading(path)
    facts = {"state": state.place, "begun": is_begun, "sums": guard.rules()["sums"]}
    show.step("Begun" if is_begun else "Trusted", f"{sums}: kept in {state.place}, {text}", **facts)
    return Exit.DONE


def show(path: str | None, *, insecure_database: bool, as_json: bool) -> Exit:
    """Show rules and sums. Raises CommandEnded, ConfigurationError."""
    path, guard = _read(path)
    state = _state_of(guard, insecure_database=insecure_database)
    figures = [] if state is None else state.figures()
    out = show_for(as_json=as_json)
    out.heading(path, f"digest {guard.digest}")
    if as_json:
        exists = state is not None and not state.is_missing
        is_trusted = state is None or (exists and not any(each.wait for each in figures))
        facts: dict[str, Any] = {
            "rules": guard.rules(),
            "digest": guard.digest,
            "state": state and state.place,
        }
        out.step("Guard", "", good=is_trusted, **facts, exists=exists, sums=[*map(_facts, figures)])
        return Exit.DONE
    for name, text in rule_texts(guard):
        out.step(name, text)
    _show_sums(guard, state, figures, out)
    return Exit.DONE


def _show_sums(guard: Guard, state: GuardState | None, figures: list[SumFigures], out: Show) -> None:
    if state is None:
        where = "are kept by each process for itself (budgets='process')" if guard.sums else "none"
        out.step("Sums", f"{where}: only the rules can be shown", good=None)
    elif state.is_missing:
        sums = ", ".join(map(sum_text, guard.sums))
        out.step("Sums", f"{sums}: {state.place} does not exist yet; {BEGIN} makes it", good=False)
    else:
        out.step("Kept in", state.place, wrap=False)
    for each in figures:
        out.step("Sum", _figures_text(each), good=not each.wait)
    if any(each.held for each in figures):
        out.step("Held", _HELD, good=None)


def _figures_text(each: SumFigures) -> str:
    """`GHS 50,000 in one hour: 1,200 paid, 300 held, 48,500 left`."""
    paid, held, left = (grouped(figure, each.currency) for figure in (each.paid, each.held, _left(each)))
    limit = sum_text(Sum(each.currency, each.most, each.seconds))
    shown = f"{limit}: {paid} paid, {held} held, {left} left"
    return f"{shown}; {wait_text(each.wait)}" if each.wait else shown


def wait_text(wait: float) -> str:
    """For how long a state refuses that is not trusted."""
    return f"it refuses for another {duration_text(wait)}, or until {BEGIN}"


def _left(each: SumFigures) -> Decimal:
    return max(each.most - each.paid - each.held, Decimal(0))


def _facts(each: SumFigures) -> dict[str, Any]:
    amounts = {"most": each.most, "paid": each.paid, "held": each.held, "left": _left(each)}
    texts = {name: f"{amount:f}" for name, amount in amounts.items()}
    trusted = {"trusted": not each.wait, "trusted_in": round(each.wait, 1)}
    return {"currency": each.currency, "seconds": each.seconds, **texts, **trusted}


def _read(path: str | None) -> tuple[str, Guard]:
    """The path of the guard's file, and what it says. Raises CommandEnded, ConfigurationError."""
    path = path or os.environ.get(VARIABLE)
    if not path:
        raise CommandEnded(f"no guard: give its file with --guard, or set {VARIABLE} to it", Exit.USAGE)
    return path, Guard.from_file(path)


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


@attrs.frozen(eq=False)
class GuardState:
    """The state of a guard's sums. Its methods raise CommandEnded where it is away, ConfigurationError."""

    _sums: GuardSums

    @property
    def place(self) -> str:
        """Where it is: a file's path, or a database without what its address may hold besides."""
        return self._sums.state.place

    @property
    def is_missing(self) -> bool:
        """True for a file that nobody has made yet: reading would make it."""
        return self.place.startswith("/") and not os.path.exists(self.place)

    def figures(self) -> list[SumFigures]:
        """What it has of each sum; nothing while it is missing."""
        return [] if self.is_missing else self._done(self._sums.figures)

    def wait(self) -> float | None:
        """Seconds until it is trusted; None while it is missing."""
        return max((each.wait for each in self.figures()), default=None)

    def begin(self) -> None:
        """Trust all windows from now on."""
        self._done(self._sums.begin)

    def _done(self, work: Any) -> Any:
        try:
            return work()
        except StateUnavailable as error:
            raise CommandEnded(str(error), Exit.REFUSED) from None
        finally:
            self._sums.state.close()


def _state_of(guard: Guard, *, insecure_database: bool) -> GuardState | None:
    """The state of a guard's sums for the environment's key, if it has one. Raises ConfigurationError."""
    if not guard.sums or guard.budgets:
        return None
    return state_of(guard, owner_of(variables(os.environ), insecure_database=insecure_database))


def owner_of(given: Mapping[str, str], *, insecure_database: bool = False) -> GuardOwner:
    """The account of the environment's key. Raises ConfigurationError."""
    return GuardOwner(
        address=normal(check_base_url(given.get("PAYMENTS_BASE_URL"))),
        fingerprint=read_key(given.get("PAYMENTS_API_KEY")).fingerprint,
        database=given.get("PAYMENTS_LIMIT_STORE"),
        insecure_database=insecure_database,
    )


def state_of(guard: Guard, owner: GuardOwner) -> GuardState | None:
    """The state of a guard's sums, if it is kept anywhere. Nothing is opened.

    The guard is not that of the process's clients. Its warnings are printed. Raises ConfigurationError.
    """
    key_guard = KeyGuard(owner, SYSTEM)
    with warnings.catch_warnings(record=True, action="always") as warned:
        key_guard.join(guard)
    for each in warned:
        print_message(str(each.message))
    return None if guard.budgets or key_guard.sums is None else GuardState(key_guard.sums)
