"""The guard of a command: its file, its rules in words, and what its state has of each sum."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from decimal import Decimal
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
from .._output import Show, show_for
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
    is_begun = again or wait_of(sums) != 0
    text = "and trusted already: nothing was changed (--again begins it anew)"
    if is_begun:
        _done(sums, sums.begin)
        text = "and trusted from now on; what was paid before is not counted"
    place = sums.state.place
    show = show_for(as_json=as_json)
    show.heading(path)
    facts = {"state": place, "begun": is_begun, "sums": guard.rules()["sums"]}
    show.step("Begun" if is_begun else "Trusted", f"{_limits(guard)}: kept in {place}, {text}", **facts)
    return Exit.DONE


def show(path: str | None, *, insecure_database: bool, as_json: bool) -> Exit:
    """Show rules and sums. Raises CommandEnded, ConfigurationError."""
    path, guard, sums = _read(path, insecure_database=insecure_database)
    figures = [] if sums is None else figures_of(sums)
    out = show_for(as_json=as_json)
    out.heading(path, f"digest {guard.digest}")
    if not as_json:
        for name, text in rule_texts(guard):
            out.step(name, text)
        _show_sums(guard, sums, figures or [], out)
        return Exit.DONE
    facts: dict[str, Any] = {"rules": guard.rules(), "digest": guard.digest}
    facts |= {"state": sums and sums.state.place, "exists": sums is not None and figures is not None}
    is_trusted = figures is not None and not any(each.wait for each in figures)
    out.step("Guard", "", good=is_trusted, **facts, sums=[*map(_facts, figures or ())])
    return Exit.DONE


def _show_sums(guard: Guard, sums: GuardSums | None, figures: list[SumFigures], out: Show) -> None:
    if sums is None:
        where = "are kept by each process for itself (budgets='process')" if guard.sums else "none"
        out.step("Sums", f"{where}: only the rules can be shown", good=None)
    elif not figures:
        missing = f"{sums.state.place} does not exist yet; {BEGIN} makes it"
        out.step("Sums", f"{_limits(guard)}: {missing}", good=False)
    else:
        out.step("Kept in", sums.state.place, wrap=False)
    for each in figures:
        paid, held, left = (grouped(figure, each.currency) for figure in (each.paid, each.held, _left(each)))
        text = f"{sum_text(_sum(each))}: {paid} paid, {held} held, {left} left"
        out.step("Sum", f"{text}; {wait_text(each.wait)}" if each.wait else text, good=not each.wait)
    if any(each.held for each in figures):
        out.step("Held", _HELD, good=None)


def _limits(guard: Guard) -> str:
    return ", ".join(map(sum_text, guard.sums))


def sum_text(each: Sum) -> str:
    """`GHS 50,000 in one hour`."""
    return f"{amount_text(each.currency, each.most)} in {window_name(each.seconds)}"


def wait_text(wait: float) -> str:
    """For how long a state refuses that is not trusted."""
    return f"it refuses for another {duration_text(wait)}, or until {BEGIN}"


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


def _sum(each: SumFigures) -> Sum:
    return Sum(each.currency, each.most, each.seconds)


def _left(each: SumFigures) -> Decimal:
    return max(each.most - each.paid - each.held, Decimal(0))


def _facts(each: SumFigures) -> dict[str, Any]:
    amounts = {"most": each.most, "paid": each.paid, "held": each.held, "left": _left(each)}
    texts = {name: f"{amount:f}" for name, amount in amounts.items()}
    trusted = {"trusted": not each.wait, "trusted_in": round(each.wait, 1)}
    return {"currency": each.currency, "seconds": each.seconds, **texts, **trusted}


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
    owner = GuardOwner(
        address=normal(check_base_url(given.get("PAYMENTS_BASE_URL"))),
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


def figures_of(sums: GuardSums) -> list[SumFigures] | None:
    """What a state has of each sum; None for a file that nobody has made yet, as reading would make it.

    Raises CommandEnded, ConfigurationError.
    """
    place = sums.state.place
    return None if place.startswith("/") and not os.path.exists(place) else _done(sums, sums.figures)


def wait_of(sums: GuardSums) -> float | None:
    """Seconds until a state is trusted; None for a file that nobody has made yet. Raises as `figures_of`."""
    figures = figures_of(sums)
    return None if figures is None else max(each.wait for each in figures)


def _done(sums: GuardSums, work: Callable[[], T]) -> T:
    try:
        return work()
    except StateUnavailable as error:
        raise CommandEnded(str(error), Exit.REFUSED) from None
    finally:
        sums.state.close()
