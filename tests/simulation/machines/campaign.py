"""Many schedules of several machines, what must happen in them, and their command line."""

from __future__ import annotations

from payments_async.bulk._protocol.machines import Loss
from payments_async.bulk._protocol.matching import Match
from payments_async.bulk._protocol.rows_in_doubt import NextStep

from .. import command
from .ablation import RULES, breaches_without
from .schedule import run_schedule

EVENTS = (
    # Machines and their leases
    *("killed", "stopped", "suspended", "cut off", "send", "look", "expired lease granted to another"),
    *("lease ended before its renewal", "lease lost", "lease not given back", "a run was stopped"),
    # The database
    *("outage", "restart", "fail over", "restore", "database clock set"),
    *("a copy took over with every commit", "another server with every commit"),
    "the answer to a commit was lost",
    *(f"lost: {what}" for what in ("an intent", "an outcome", "a lease", "a command", "a recovery")),
    *(f"loss: {loss.name}" for loss in Loss if loss is not Loss.BY_HAND),
    # Intents and outcomes
    *("intent not recorded: no answer", "intent refused: LOST", "intent refused: STOPPED"),
    *("intent refused: the row has changed", "intent renewed", "waited before the first byte"),
    *("answer: withheld", "abandoned request carried out later", "late outcome merged"),
    *("late outcome: nothing new", "outcomes never recorded"),
    # The operator
    *(f"{kind} {end}" for kind in ("cancel", "edit", "retry") for end in ("done", "refused", "given again")),
    *("a command without an answer", "a command waits for a reading of the list"),
    *("recovery waits for a proof", "recovered", "recovery: CREATED", "recovery: CONFLICT"),
    # The service and decisions
    *(f"gate {status}" for status in (404, 408, 429, 500)),
    *("5xx after the commit", "replayed 201", "foreign payout", "sent again at once", "key over 23 hours"),
    *("rejected after proven absence", "next epoch made it", "scan cut short"),
    *(f"found: {match}" for match in Match if match is not Match.OTHER_BODY),
    *(f"resolution: {step}" for step in NextStep),
)
"""What must happen sometimes."""


MACHINES = command.Kind("machines", run_schedule, EVENTS, tuple(RULES), breaches_without)
