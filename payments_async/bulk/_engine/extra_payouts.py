"""Collects, while the list is read, the payouts of a batch that stand for none of its rows.

They are found under a row's references, or by the batch's proof under a reference that no row has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Final

from ...models import Amount, Payout
from ...models.statuses import PayoutEnd
from .._protocol.identifiers import Identity, Proof
from .._protocol.listed_payouts import Judgement
from .._protocol.outcomes import ExtraPayout, ExtraTotals, Sums
from .._protocol.payout_status import end_of, facts_of
from .._protocol.records import Binding

_SMALLEST: Final = Decimal("1E-40")
_LARGEST: Final = Decimal("1E+40")
"""Amounts between these are added up exactly; any other is a finding."""
_NO_CURRENCY: Final = "XXX"
"""The code of ISO 4217 for none."""
_UNKNOWN: Final = "the list shows {}, which has this batch's proof, and a reference that no row has"
_ABSURD: Final = "{}: a payout beside the rows, whose amount cannot be added up"


class ExtraPayouts:
    """The payouts found so far, each counted once."""

    def __init__(self, binding: Binding, note: Callable[[str], object]) -> None:
        """`note`: called with what is wrong with one of them."""
        self._batch = Identity(binding.environment, binding.batch_id, "").proof("").batch
        self._note = note
        self._found: dict[str, tuple[ExtraPayout, str, Decimal]] = {}

    @property
    def totals(self) -> ExtraTotals:
        """Their counts and sums, in their own currencies and amounts."""
        sums = Sums[tuple[ExtraPayout, str]]()
        for word, currency, amount in self._found.values():
            sums.add((word, currency), amount)
        return sums.totals

    def take(self, judgement: Judgement, currency: str) -> None:
        """Count those beside a row. `currency`: of a payout that shows none."""
        if judgement.standing is not None:
            self._found.pop(_name(judgement.standing.payout), None)
        for word, payout in judgement.extra:
            self._add(word, payout, currency)

    def take_unknown(self, payouts: Iterable[Payout]) -> None:
        """Count those with the batch's proof, among payouts whose references no row has."""
        for payout in payouts:
            proof = Proof.of(payout.metadata)
            if proof is None or proof.batch != self._batch or end_of(payout) is PayoutEnd.FAILED:
                continue
            if self._add(ExtraPayout.IN_EXCESS, payout, _NO_CURRENCY):
                self._note(_UNKNOWN.format(facts_of(payout)))

    def _add(self, word: ExtraPayout, payout: Payout, currency: str) -> bool:
        """Count one; True if it was not counted before."""
        is_new, amount = _name(payout) not in self._found, payout.amount or Amount()
        value = amount.value or Decimal(0)
        if not (_SMALLEST <= value.copy_abs() <= _LARGEST and value > 0):
            self._note(_ABSURD.format(facts_of(payout)))
            value = Decimal(0)
        self._found[_name(payout)] = (word, amount.currency or currency, value)
        return is_new


def _name(payout: Payout) -> str:
    return payout.id or payout.reference or ""
