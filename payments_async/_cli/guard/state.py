"""The guard of a command: its file, its rules in words, and what its state has of each sum."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

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
from .._output import show_for
from .._text import print_message

T = TypeVar("T")
VARIABLE: Final = "PAYMENTS_GUARD"
BEGIN: Final = "`payments guard begin`"
_HELD: Final = (
    "no outcome is known yet: under way, in doubt, or of a process that was killed. It counts for the length "
    "of the window and 16 minutes, from its last reservation on"
)


def begin(path: str | None, *, again: bool, insecure_database: bool, as_json: bool) -> Exit:
    """Trust the state from now on. Raises CommandEnded, ConfigurationError."""
    path, guard, sums = _read(path, insecure_database=insecure_database)
    if sums is None:
        why = "its sums are kept by each process" if guard.sums else "it has no sums"
        raise CommandEnded(f"{path}: there is no state to begin: {why}", Exit.USAGE)
    place, _, problem = read_state(sums)
    is_begun = again or problem is not None
    text = "and trusted already: nothing was changed (--again begins it anew)"
    if is_begun:
        _done(sums, sums.begin)
        text = "and trusted from now on; what was paid before is not counted"
    out = show_for(as_json=as_json)
    out.heading(path)
    facts = {"state": place, "begun": is_begun, "sums": guard.rules()["sums"]}
    out.step("Begun" if is_begun else "Trusted", f"{_limits(guard)}: kept in {place}, {text}", **facts)
    return Exit.DONE


def show(path: str | None, *, insecure_database: bool, as_json: bool) -> Exit:
    """Show rules and sums. Raises CommandEnded, ConfigurationError."""
    path, guard, sums = _read(path, insecure_database=insecure_database)
    place, figures, problem = (None, None, None) if sums is None else read_state(sums)
    text = "kept by each process for itself (budgets='process')" if guard.sums else "no sums"
    if sums is not None:
        text = f"{_limits(guard)}: {problem or f'kept in {place}'}"
    facts: dict[str, Any] = {"rules": guard.rules(), "digest": guard.digest, "state": place}
    facts |= {"exists": figures is not None, "sums": [*map(_facts, figures or ())]}
    out = show_for(as_json=as_json)
    out.heading(path, f"digest {guard.digest}")
    out.step("Guard", text, good=problem is None, **facts)
    for name, rule in rule_texts(guard):
        out.line(name, rule)
    for each in figures or ():
        paid, held, left = (grouped(figure, each.currency) for figure in (each.paid, each.held, each.left))
        figure = sum_text(Sum(each.currency, each.most, each.seconds))
        out.line("Sum", f"{figure}: {paid} paid, {held} held, {left} left")
    if any(each.held for each in figures or ()):
        out.line("Held", _HELD)
    return Exit.DONE


def _limits(guard: Guard) -> str:
    return ", ".join(map(sum_text, guard.sums))


def sum_text(each: Sum) -> str:
    """`GHS 50,000 in one hour`."""
    return f"{amount_text(each.currency, each.most)} in {window_name(each.seconds)}"


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


def _facts(each: SumFigures) -> dict[str, Any]:
    amounts = {name: f"{getattr(each, name):f}" for name in ("most", "paid", "held", "left")}
    trusted = {"trusted": not each.wait, "trusted_in": round(each.wait, 1)}
    return {"currency": each.currency, "seconds": each.seconds, **amounts, **trusted}


# The state


def _read(path: str | None, *, insecure_database: bool) -> tuple[str, Guard, GuardSums | None]:
    """The path of the guard's file, what it says, and its sums if they are kept anywhere.

    Raises CommandEnded, ConfigurationError.
    """
    path = path or os.environ.get(VARIABLE)
    if not path:
        raise CommandEnded(f"no guard: give its file with --guard, or set {VARIABLE} to it", Exit.USAGE)
    guard = Guard.from_file(path)
    if not guard.sums or guard.budgets:
        return path, guard, None
    return path, guard, sums_of(guard, variables(os.environ), insecure_database=insecure_database)


def sums_of(guard: Guard, given: Mapping[str, str], *, insecure_database: bool = False) -> GuardSums | None:
    """The sums of a guard for the environment's key, if they are kept anywhere. Nothing is opened.

    The guard is not that of the process's clients. Its warnings are printed. Raises ConfigurationError.
    """
    base_url = check_base_url(given.get("PAYMENTS_BASE_URL"), given.get("PAYMENTS_SANDBOX_HOSTS"))
    owner = GuardOwner(
        address=normal(base_url),
        fingerprint=read_key(given.get("PAYMENTS_API_KEY")).fingerprint,
        database=given.get("PAYMENTS_LIMIT_STORE"),
        insecure_database=insecure_database,
    )
    key_guard = KeyGuard(owner, SYSTEM)
    with warnings.catch_warnings(record=True, action="always") as warned:
        key_guard.join(guard)
    for each in warned:
        print_message(str(each.message))
    return None if guard.budgets else key_guard.sums


def read_state(sums: GuardSums) -> tuple[str, list[SumFigures] | None, str | None]:
    """The place of a state, what it has of each sum, and why it refuses, if it does.

    A file that nobody has made yet has none, as reading would make it. Raises CommandEnded,
    ConfigurationError.
    """
    place = sums.state.place
    if os.path.isabs(place) and not os.path.exists(place):
        return place, None, f"{place} does not exist yet; {BEGIN} makes it"
    figures = _done(sums, sums.figures)
    wait = max(each.wait for each in figures)
    problem = f"it refuses for another {duration_text(wait)}, or until {BEGIN}" if wait else None
    return place, figures, problem


def _done(sums: GuardSums, work: Callable[[], T]) -> T:
    try:
        return work()
    except StateUnavailable as error:
        raise CommandEnded(str(error), Exit.REFUSED) from None
    finally:
        sums.state.close()
