"""The certificate: compares the service's whole list with the whole ledger, row by row and field by field."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import attrs

from ...models import Payout
from ...models._masking import clean
from .._report import BatchReport, report_of
from ..engine.mirror import OtherGenerations
from ..engine.payout_list import pages
from ..engine.service import Service
from ..ledger.ledger import Ledger
from ..protocol.matching import MONEY, Match, compared, expected, judge, shown
from ..protocol.outcomes import OPEN
from ..protocol.payout_status import described, facts_of, failure_of, status_difference
from ..protocol.records import CheckReport, LedgerRow, RowSet
from ..protocol.row_state import RowState
from ..protocol.totals import as_text

_MOST_FINDINGS: Final = 100
_NAMED: Final = 5
_PLACE: Final = ("environment", "base_url", "key_fingerprint", "input_hash", "at")
_LATER: Final = (
    "the list shows {}, a later payout of it that this ledger does not know of; "
    "pay the row by no other means before you have looked at it"
)
_PAST: Final = "{} had failed and the row was retried, and the list shows {}"


@attrs.frozen
class FieldCount:
    """Counts the created rows of which one field was compared with the list."""

    compared: int = 0
    not_shown: int = 0
    """Rows whose payouts the list shows without the field: they were not compared."""

    def with_row(self, *, is_shown: bool) -> FieldCount:
        """Count one more row."""
        return FieldCount(self.compared + is_shown, self.not_shown + (not is_shown))


@attrs.frozen
class Audit:
    """The result of comparing the ledger with the service's list."""

    seen: int
    """Created rows whose payouts the list shows as requested, amount and currency included."""
    missing: int
    """Created rows whose payouts the list does not show."""
    differing: int
    """Rows whose payouts differ between list and ledger, in content or status, and rows in conflict."""
    uncompared: int
    """Created rows whose payouts the list shows without an amount or currency, but otherwise equal."""
    fields: Mapping[str, FieldCount]
    """{field: the count of rows compared}: `amount`, `currency`, and `metadata.payments_sdk`,
    the proof that covers the whole request; without proofs, each detail instead."""
    findings: tuple[str, ...]
    """The first differences, by row number."""


class Auditor:
    """Compares the ledger with the list, page by page, with one bit of memory for each row."""

    def __init__(self, ledger: Ledger, service: Service, known: RowSet) -> None:
        """`known`: rows whose status is known to differ, and is not to be told again."""
        self._ledger, self._service, self._known = ledger, service, known
        self._seen, self._turned = RowSet(), RowSet()
        self._counts = {"seen": 0, "missing": 0, "differing": 0, "uncompared": 0}
        self._fields = dict.fromkeys(MONEY, FieldCount())
        self._uncompared: list[int] = []
        self._findings: list[str] = []

    async def audit(self) -> Audit:
        """Compare all: read the list from its newest payout to its oldest, then the ledger's created rows.

        Raises PaymentsError when the list cannot be read to its end, or not whole.
        """
        others = OtherGenerations(self._ledger)
        async for page in pages(self._service):
            for row, words in await others.take(page):
                self._note("differing", f"row {row.number}: {_LATER.format(words)}")
            for row, payout in await others.past(page):
                if failure_of(payout) is None:
                    self._note("differing", f"row {row.number}: {_PAST.format(payout.id, described(payout))}")
            by_reference: dict[str, list[Payout]] = {}
            for payout in page:
                if payout.reference is not None:
                    by_reference.setdefault(payout.reference, []).append(payout)
            for row in await self._ledger.by_references(by_reference):
                for payout in by_reference[row.reference]:
                    self._compare(row, payout)
        async for row in self._ledger.rows(RowState.CREATED):
            if row.number not in self._seen:
                self._note("missing", f"row {row.number}: {row.known.payout_id} is not in the list")
        async for row in self._ledger.rows(RowState.CONFLICT):
            if row.number not in self._seen:
                self._note("differing", f"row {row.number}: in conflict, and its payout is not in the list")
        uncompared = _not_compared(self._counts["uncompared"], self._uncompared)
        return Audit(**self._counts, fields=self._fields, findings=(*uncompared, *self._findings))

    def _compare(self, row: LedgerRow, payout: Payout) -> None:
        if row.state is RowState.CONFLICT:
            self._seen.add(row.number)
            self._note("differing", f"row {row.number}: in conflict, and the list shows {facts_of(payout)}")
        elif row.state is not RowState.CREATED:
            self._note("differing", f"row {row.number}: {row.state}, and the list shows {facts_of(payout)}")
        elif self._seen.add(row.number):
            self._count(row, payout)
            self._compare_status(row, payout)
        elif payout.id != row.known.payout_id:
            finding = f"row {row.number}: {payout.id} has its reference, beside {row.known.payout_id}"
            self._note("differing", finding)
        elif _is_other(judge(expected(row), shown(payout))):
            # a list that grows while it is read may repeat a payout on two pages, but never with a difference
            finding = f"row {row.number}: {row.known.payout_id}, and the list shows it in two ways"
            self._note("differing", finding)
        else:
            self._compare_status(row, payout)

    def _compare_status(self, row: LedgerRow, payout: Payout) -> None:
        told = status_difference(row, payout)
        if told is not None and row.number not in self._known and self._turned.add(row.number):
            self._note("differing", told)

    def _count(self, row: LedgerRow, payout: Payout) -> None:
        """Compare a created row with the payout that the list shows under its reference."""
        asked, found = expected(row), shown(payout)
        fields = compared(asked, found)
        for name, is_shown in fields.items():
            self._fields[name] = self._fields.get(name, FieldCount()).with_row(is_shown=is_shown)
        match = judge(asked, found) if payout.id == row.known.payout_id else Match.FOREIGN
        kind = _kind(match, shows_money=all(fields[name] for name in MONEY))
        if kind == "differing":
            self._note(
                kind, f"row {row.number}: {row.known.payout_id}, and the list shows {payout.id} differently"
            )
            return
        self._counts[kind] += 1
        if kind == "uncompared":
            self._uncompared = sorted([*self._uncompared, row.number])[:_NAMED]

    def _note(self, kind: str, finding: str) -> None:
        self._counts[kind] += 1
        if len(self._findings) < _MOST_FINDINGS:
            self._findings.append(finding)


def _kind(match: Match, *, shows_money: bool) -> str:
    """Name the count of an `Audit` to which a created row on the list belongs."""
    if _is_other(match):
        return "differing"
    if not shows_money:
        return "uncompared"
    return "seen" if match is Match.EQUAL else "differing"


def _is_other(match: Match) -> bool:
    return match in (Match.FOREIGN, Match.OTHER_BODY)


def _not_compared(uncompared: int, first: Sequence[int]) -> tuple[str, ...]:
    """Make the finding for rows that were not compared; `first` are the first of their numbers."""
    if not uncompared:
        return ()
    rows = "1 row was" if uncompared == 1 else f"{uncompared} rows were"
    more = f" and {uncompared - len(first)} more" if uncompared > len(first) else ""
    which = f"row{'s' * (uncompared > 1)} {', '.join(map(str, first))}{more}"
    return (f"{rows} not compared: the list shows no amount or no currency of {which}",)


@attrs.frozen
class Certificate:
    """The state of a batch, by the ledger and by the service's own list."""

    report: BatchReport
    environment: str
    """`live` or `sandbox`."""
    base_url: str
    key_fingerprint: str
    """A fingerprint that distinguishes API keys without revealing them."""
    input_hash: str
    at: float
    """Seconds since 1970."""
    check: CheckReport
    """The check of the ledger itself; its head covers all that was ever recorded of rows."""
    audit: Audit
    """The comparison of the ledger with the service's list."""

    @property
    def is_clean(self) -> bool:
        """True if the batch is complete, adds up, and the list agrees with the ledger in every row.

        Not when an amount or a currency of a row was not compared: see `audit.fields`.
        """
        return not self.findings

    @property
    def findings(self) -> tuple[str, ...]:
        """All that is wrong: with the batch, in the ledger's check and in the list's audit."""
        found = (*shortcomings(self.report), *self.check.findings, *self.audit.findings)
        return tuple(map(clean, found))  # these may contain the service's own texts

    def to_json(self) -> str:
        """Encode the certificate as JSON text, amounts as text. It holds no account data."""
        report = self.report
        facts: dict[str, Any] = {
            "version": 1,
            "batch_id": report.batch_id,
            **{name: getattr(self, name) for name in _PLACE},
            "clean": self.is_clean,
            "findings": list(self.findings),
            "rows": dict(report.counts),
            "sums": {
                currency: {word: as_text(amount) for word, amount in sums.items()}
                for currency, sums in report.sums.items()
            },
            "ledger": attrs.asdict(self.check),
            "list": attrs.asdict(self.audit),
        }
        return json.dumps(facts, indent=2)


def shortcomings(report: BatchReport) -> Iterator[str]:
    """Find what a batch lacks, by its own counts and sums."""
    if not report.complete:
        open_rows = {outcome.replace("_", " "): report.counts[outcome] for outcome in OPEN}
        left = ", ".join(f"{rows:,} {words}" for words, rows in open_rows.items() if rows)
        yield f"the batch is not complete: of {report.rows:,} rows, {left}"
    if not report.balanced:
        yield "the batch does not add up: its rows or amounts by state are not those that were imported"


async def certify(ledger: Ledger, service: Service, known: RowSet | None = None) -> Certificate:
    """Check the ledger and compare the list; records nothing.

    `known`: rows whose status is known to have differed. Raises PaymentsError when the list cannot be read to
    its end.
    """
    check = await ledger.check()
    audit = await Auditor(ledger, service, known or RowSet()).audit()
    await ledger.refresh()
    header = ledger.header
    binding = header.binding
    return Certificate(
        report_of(header, ledger.totals),
        binding.environment,
        binding.base_url,
        binding.key_fingerprint,
        binding.input_hash,
        service.moment().wall,
        check.with_finding(ledger.gone).with_finding(ledger.unproven),  # while the list was read, perhaps
        audit,
    )
