"""The protocol of many machines without one of its rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from payments_async.bulk._protocol import machines, row_state, transitions
from payments_async.bulk._protocol.machines import LEASE
from payments_async.bulk._protocol.row_state import RowKnowledge, RowState

from ..ablation import Ablation, always, replaced
from . import chunk_run, commands, database, leased, process
from . import recovery as recover
from .database import State
from .plan import draw_fleet
from .schedule import run_schedule


def _in_sequence(_: Any) -> Callable[..., bytes]:
    return lambda chunk, _chance: b"%d" % chunk.leases


def _known(counts: Callable[[State, RowState], bool]) -> Callable[[Any], Callable[..., RowKnowledge]]:
    """What is believed of a row where lost intents count for some rows only."""

    def make(real: Any) -> Callable[..., RowKnowledge]:
        def known(state: State, row: str) -> RowKnowledge:
            kept: RowKnowledge = state.rows[row].known
            return real(state, row) if counts(state, kept.state) else kept

        return known

    return make


def _own_end_late(_: Any) -> Callable[[float], float]:
    return lambda asked: asked + 4 * LEASE


@attrs.frozen
class Rule:
    """What the code is without a rule, and what happens where its lack shows soonest; empty: anywhere."""

    ablations: tuple[Ablation, ...]
    script: str = ""


RULES: Final[Mapping[str, Rule]] = {
    # Leases
    "last_check": Rule(((chunk_run, "may_send", always(True)),)),
    "intents_are_fenced": Rule(((machines, "intent_block", always(None)),)),
    "outcomes_are_merged": Rule(((row_state, "merge", lambda _: lambda _known, other: other),), "suspended"),
    "leases_are_random": Rule(((process, "new_lease_id", _in_sequence),), "asleep in a fail-over"),
    "leases_end_early": Rule(((machines, "own_end", _own_end_late),)),
    "ended_leases_are_not_renewed": Rule(((process, "may_renew", always(True)),), "suspended in an outage"),
    # After lost commits
    "losses_are_noticed": Rule(((machines, "loss_of", always(None)),)),
    "new_leases_wait_for_old_ones": Rule(
        ((database, "void_until", lambda _: lambda now: now),), "cut off in a fail-over"
    ),
    "lost_intents_are_counted": Rule(((row_state, "after_loss", lambda _: lambda known, _losses: known),)),
    "lost_intents_are_recent": Rule(((transitions, "perhaps_resent", always(None)),), "old keys"),
    "lost_intents_of_rows_in_doubt": Rule(
        ((State, "known", _known(lambda _, row: row is RowState.NEW)),), "replaced before a fail-over"
    ),
    "lost_intents_outlive_the_proof": Rule(
        ((State, "known", _known(lambda state, _: state.proven != state.losses)),), "asleep until a proof"
    ),
    "outcomes_are_of_one_body": Rule(((leased, "body_hash", always(None)),), "lost corrections"),
    "commands_wait_for_a_proof": Rule(
        ((commands, "must_wait", always(False)), (recover, "proof_due", always(0.0))), "lost cancellations"
    ),
    "list_is_believed": Rule(((recover, "payout_of", always(None)),)),
}
"""{rule: what shows its lack}."""


def breaches_without(name: str, seeds: range) -> Iterator[tuple[int, str]]:
    """The seeds that go wrong without that one rule, and how."""
    rule = RULES[name]
    for seed in seeds:
        with replaced(rule.ablations):
            breach = run_schedule(seed, draw_fleet(seed, rule.script)).breach
        if breach is not None:
            yield seed, breach
