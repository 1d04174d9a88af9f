"""Services that are wrong in one place: where, how, and the promise of the contract that has to catch it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Mutant:
    """One wrong place."""

    name: str
    module: str
    place: str
    """The function or `Class.method` that is changed."""
    before: str
    after: str
    caught_by: str


MUTANTS = (
    Mutant(
        "a repeat pays again",
        "_api.core",
        "Core._once",
        "if stored is not None:",
        "if stored is not None and stored.answer.status >= 400:",
        "a_repeat_is_answered_from_store",
    ),
    Mutant(
        "a replay does not say so",
        "_api.core",
        "Core._once",
        '"X-Idempotent-Replayed": "true"',
        '"X-Idempotent-Replayed": "false"',
        "a_repeat_is_answered_from_store",
    ),
    Mutant(
        "a lost answer is not kept",
        "_api.core",
        "Core._serve",
        "self._once(call, sources, note, late=fault.seconds)",
        "self._run(call, sources)[0]",
        "a_lost_answer_is_kept",
    ),
    Mutant(
        "keys are forgotten after 23 hours",
        "_records.idempotency",
        "IdempotencyStore.find",
        "stored.at + LIFETIME",
        "stored.at + LIFETIME - 3600",
        "a_key_lives_for_24_hours",
    ),
    Mutant(
        "keys are never forgotten",
        "_records.idempotency",
        "IdempotencyStore.find",
        "now < stored.at + LIFETIME",
        "True",
        "a_key_lives_for_24_hours",
    ),
    Mutant(
        "the body under a key does not matter",
        "_records.idempotency",
        "fingerprint",
        ".encode() + body",
        ".encode()",
        "a_key_belongs_to_one_body",
    ),
    Mutant(
        "a reference can be used twice",
        "_records.payouts",
        "create_payout",
        "if reference in tenant.payouts_by_reference:",
        "if False:",
        "a_reference_is_used_once",
    ),
    Mutant(
        "a refused request is remembered by its reference",
        "_api.request_schemas",
        "validate",
        "    if breaches.errors:",
        "    if len(breaches.errors) > 1:",
        "what_is_refused_leaves_nothing",
    ),
    Mutant(
        "expired keys still work",
        "_records.tenants",
        "authenticate",
        'if tenant.status != "active":',
        'if tenant.status == "inactive":',
        "a_key_is_needed_and_has_to_be_good",
    ),
    Mutant(
        "the allowlist is not looked at",
        "_records.tenants",
        "authenticate",
        "if tenant.allowlist is not None and",
        "if tenant.allowlist is None and",
        "a_key_is_needed_and_has_to_be_good",
    ),
    Mutant(
        "an amount just below 1 will do",
        "_api.field_checks",
        "amount",
        "value < 1",
        "value < 0.5",
        "bounds_of_fields_hold",
    ),
    Mutant(
        "a bound is off by one",
        "_api.field_checks",
        "pairs.<locals>.check",
        "len(value) > most",
        "len(value) > most + 1",
        "bounds_of_fields_hold",
    ),
    Mutant(
        "a window holds one too many",
        "_common.rate_limits",
        "AlignedWindows.wait",
        "self._counts.get(scope, 0) < limit",
        "self._counts.get(scope, 0) <= limit",
        "limits_hold_and_a_429_does_nothing",
    ),
    Mutant(
        "the limit for one record counts for all",
        "_common.rate_limits",
        "SandboxLimits.scopes",
        'f"record {record_id}"',
        '"record"',
        "limits_hold_and_a_429_does_nothing",
    ),
    Mutant(
        "what is over the limit is carried out",
        "_api.core",
        "Core._admit",
        "raise self._limited(excess.limit, excess.wait)",
        "self._read(call); self._run(call, []); raise self._limited(excess.limit, excess.wait)",
        "limits_hold_and_a_429_does_nothing",
    ),
    Mutant(
        "a page begins with the last record of the one before",
        "_api.paging",
        "_older",
        "end = min(end, query.cursor.position)",
        "end = min(end, query.cursor.position + 1)",
        "pages_are_newest_first_and_stable",
    ),
    Mutant(
        "pages move while records are added",
        "_api.paging",
        "_older",
        "end = min(end, query.cursor.position)",
        "end = end - len(range(query.cursor.position, end)) + 1 if end > 5 else query.cursor.position",
        "pages_are_newest_first_and_stable",
    ),
    Mutant(
        "the oldest comes first",
        "_api.paging",
        "_older",
        "range(end - 1, first - 1, -1)",
        "range(first, end)",
        "pages_are_newest_first_and_stable",
    ),
    Mutant(
        "filters by day are passed over",
        "_api.paging",
        "find_page",
        "0 if query.since is None else",
        "0 if True else",
        "filters_narrow",
    ),
    Mutant(
        "a final payout can change",
        "_records.payouts",
        "_end",
        "not payout.is_final and",
        "",
        "a_payout_ends_once",
    ),
    Mutant(
        "failed payouts count as paid",
        "_records.books",
        "Books.total",
        'entry.status != "failed"',
        'entry.status != "refused"',
        "a_payout_ends_once",
    ),
    Mutant(
        "a paid session expires",
        "_records.payments",
        "_expire_at",
        "if payment.is_open:",
        'if payment.is_open or setattr(payment, "status", "expired"):',
        "a_payment_expires_unless_it_is_paid",
    ),
    Mutant(
        "refunds in flight are not reserved",
        "_records.records",
        "PaymentRecord.refundable",
        "less(self.amount, self.refunded, self.reserved)",
        "less(self.amount, self.refunded)",
        "refunds_in_flight_are_reserved",
    ),
    Mutant(
        "a refund that failed keeps the money",
        "_records.payments",
        "settle_refund",
        "kept for kept in payment.refunds if kept is not refund)",
        "kept for kept in payment.refunds)",
        "refunds_in_flight_are_reserved",
    ),
    Mutant(
        "what was not paid can be refunded",
        "_records.records",
        "PaymentRecord.refundable",
        "if self.completed_at is None:",
        "if self.completed_at is NotImplemented:",
        "refunds_in_flight_are_reserved",
    ),
    Mutant(
        "amounts pass through a float",
        "_common.money",
        "plain",
        "isinstance(value, Decimal) else Decimal(str(value))",
        "False else Decimal(float(value))",
        "amounts_are_exact",
    ),
    Mutant(
        "nobody is told of a creation",
        "_records.payouts",
        "_begin",
        "_emit_webhook(world, payout, CREATED,",
        "_emit_webhook(world, payout, 'payout.made',",
        "webhooks_tell_of_creation_and_end",
    ),
    Mutant(
        "one merchant sees another's payouts",
        "_records.tenants",
        "authenticate",
        "    if tenant is None:",
        "    tenant = tenant and next(iter(tenants.values()))\n    if tenant is None:",
        "keys_and_references_belong_to_one_merchant",
    ),
    Mutant(
        "metadata comes back as texts",
        "_records.payout_json",
        "payout_form",
        'fields.get("metadata")',
        '{name: str(value) for name, value in (object_or_null(fields, "metadata") or {}).items()}',
        "metadata_comes_back_as_it_was",
    ),
)
