"""`payments guard begin` and `show`: the state of a guard's sums."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final, TypeVar

from ..._rate_limit.store import StoreUnavailable
from ..._request.settings import variables
from ...bulk._texts.quantities import duration_text, moment
from ...guard import Guard, window_name
from ...models.common import amount_text, grouped
from .._exit_codes import CommandEnded, Exit
from .._output import Show, show_for
from .state import BEGIN, GuardState, SumFigures, account_of, guard_file, joined, rule_texts, sum_text

R = TypeVar("R")
_HELD: Final = (
    "no outcome is known yet: under way, in doubt, or of a process that was killed. It counts as paid from "
    "16 minutes after it was reserved, for the length of the window"
)
_ONLY_RULES: Final = {
    True: "are kept by each process for itself (budgets='process'): only the rules can be shown",
    False: "none: only the rules can be shown",
}


def begin(path: str | None, *, again: bool, insecure_database: bool, as_json: bool) -> Exit:
    """Trust the state from now on. Raises CommandEnded, ConfigurationError."""
    path = guard_file(path, os.environ)
    guard = Guard.from_file(path)
    state = _state_of(guard, insecure_database=insecure_database)
    if state is None:
        why = "its sums are kept by each process" if guard.sums else "it has no sums"
        raise CommandEnded(f"{path}: there is no state to begin: {why}", Exit.USAGE)
    is_begun = _run(_begin(state, again=again))
    sums = ", ".join(map(sum_text, guard.sums))
    text = "and trusted from now on; what was paid before is not counted"
    if not is_begun:
        text = "and trusted already: nothing was changed (--again begins it anew)"
    show = show_for(as_json=as_json)
    show.heading(path)
    facts = {"state": state.place, "begun": is_begun, "sums": guard.rules()["sums"]}
    show.step("Begun" if is_begun else "Trusted", f"{sums}: kept in {state.place}, {text}", **facts)
    return Exit.DONE


async def _begin(state: GuardState, *, again: bool) -> bool:
    """Returns False for a state that is trusted already."""
    if not again and not state.is_missing:
        figures, _ = await state.read()
        if not any(each.wait for each in figures):
            return False
    await state.begin()
    return True


def show(path: str | None, count: int, *, insecure_database: bool, as_json: bool) -> Exit:
    """Show rules, sums and refusals. Raises CommandEnded, ConfigurationError."""
    path = guard_file(path, os.environ)
    guard = Guard.from_file(path)
    state = _state_of(guard, insecure_database=insecure_database)
    figures: list[SumFigures] = []
    refusals: Sequence[Mapping[str, Any]] = ()
    if state is not None and not state.is_missing:
        figures, refusals = _run(state.read())
    latest = [*reversed(refusals)][:count]
    out = show_for(as_json=as_json)
    out.heading(path, f"digest {guard.digest}")
    if as_json:
        facts: dict[str, Any] = {"rules": guard.rules(), "digest": guard.digest}
        facts |= {"state": state and state.place, "exists": state is not None and not state.is_missing}
        good = state is None or (bool(figures) and not any(each.wait for each in figures))
        out.step("Guard", "", good=good, **facts, sums=[each.facts() for each in figures], refusals=latest)
    else:
        _show_rules(guard, state, out)
        _show_state(figures, latest, out)
    return Exit.DONE


def _show_rules(guard: Guard, state: GuardState | None, out: Show) -> None:
    for name, text in rule_texts(guard):
        out.step(name, text)
    if state is None:
        out.step("Sums", _ONLY_RULES[bool(guard.sums)], good=None)
    elif state.is_missing:
        sums = ", ".join(map(sum_text, guard.sums))
        out.step("Sums", f"{sums}: {state.place} does not exist yet; {BEGIN} makes it", good=False)
    else:
        out.step("Kept in", state.place, wrap=False)


def _show_state(figures: Sequence[SumFigures], refusals: Sequence[Mapping[str, Any]], out: Show) -> None:
    for each in figures:
        out.step("Sum", _figures_text(each), good=not each.wait)
    if any(each.held for each in figures):
        out.step("Held", _HELD, good=None)
    for fact in refusals:
        text = f"{moment(fact['at'])}  {fact['operation']} ({fact['rule']}): {fact['text']}"
        out.step("Refused", text, good=None)


def _figures_text(each: SumFigures) -> str:
    """`GHS 50,000 in one hour: 1,200 paid, 300 held, 48,500 left`."""
    figures = (grouped(figure, each.limit.currency) for figure in (each.paid, each.held, each.left))
    used = "{} paid, {} held, {} left".format(*figures)
    shown = (
        f"{amount_text(each.limit.currency, each.limit.most)} in {window_name(each.limit.seconds)}: {used}"
    )
    if not each.wait:
        return shown
    return f"{shown}; it refuses for another {duration_text(each.wait)}, or until {BEGIN}"


def _state_of(guard: Guard, *, insecure_database: bool) -> GuardState | None:
    """The state of a guard's sums for the environment's key, if it has one. Raises ConfigurationError."""
    if not guard.sums or guard.budgets:
        return None
    given = variables(os.environ)
    store = given.get("PAYMENTS_LIMIT_STORE")
    return joined(guard, account_of(given), store, insecure_database=insecure_database)[1]


def _run(work: Coroutine[Any, Any, R]) -> R:
    """Do the work on an event loop. Raises CommandEnded where the state cannot be used now."""
    try:
        return asyncio.run(work)
    except StoreUnavailable as error:
        raise CommandEnded(str(error), Exit.REFUSED) from None
