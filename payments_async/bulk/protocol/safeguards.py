"""The protocol's rules by name, each with a switch that only tests reach.

Shipped code never makes a `ProtocolRules`: each function of the protocol defaults to `ALL`. The simulation
turns one off at a time and must then find a schedule that goes wrong; a rule that can go without harm, or
whose absence is not noticed, would not be tested.
"""

from __future__ import annotations

import attrs


@attrs.frozen(kw_only=True)
class ProtocolRules:
    """Which rules hold. All of them, except in the simulation."""

    # Identifiers
    stable_reference: bool = True
    """Every run gives a row the same reference."""
    body_free_reference: bool = True
    """A corrected body keeps the reference, so that the old body and the new one exclude each other."""
    reference_names_generation: bool = True
    """A new payout after a final failure has a reference of its own."""
    key_names_generation: bool = True
    key_names_body: bool = True
    key_names_epoch: bool = True
    """A key whose stored answer is an error can be left behind."""
    key_names_revision: bool = True
    """So can the key of a row that was refused and is asked for again, unchanged or as it once was."""

    # What an attempt proves
    silence_is_doubt: bool = True
    server_error_is_doubt: bool = True
    unreadable_success_is_doubt: bool = True
    echo_is_compared: bool = True
    replayed_error_is_stuck: bool = True
    """A replayed error is never asked for again with the same key."""
    conflict_is_not_success: bool = True
    conflict_is_not_failure: bool = True
    refusal_needs_no_doubt: bool = True
    """A refusal rejects the row only when no earlier attempt can have made a payout."""
    credentials_halt: bool = True
    wrong_address_halts: bool = True
    throttling_keeps_row: bool = True

    # Before a request leaves
    intent_before_send: bool = True
    one_request_per_row: bool = True
    same_bytes: bool = True
    fresh_intent: bool = True
    """Nothing is sent under an intent of long ago, so that the ledger bounds the time of the last send."""

    # What is known of a row
    doubt_outlives_crash: bool = True
    merge_adds_knowledge: bool = True
    corrections_wait_for_verdict: bool = True
    cancel_only_unsent: bool = True
    retry_only_after_final_failure: bool = True

    # Time
    key_expires: bool = True
    clock_back_expires_key: bool = True
    oldest_clock_counts: bool = True
    epoch_waits_for_abandoned: bool = True
    waits_on_steady_clocks: bool = True

    # Evidence of the list
    absence_needs_whole_walk: bool = True
    absence_needs_settled_list: bool = True
    walk_starts_by_service_clock: bool = True
    second_walk_is_unbounded: bool = True
    proof_decides: bool = True
    body_is_compared: bool = True

    # The run as a whole
    same_place: bool = True
    rotated_key_is_proven: bool = True
    open_rows_are_not_complete: bool = True


ALL = ProtocolRules()
