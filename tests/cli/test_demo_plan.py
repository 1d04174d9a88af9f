"""The payouts of the demonstration and the faults in their way."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest

from payments_async._cli.demo.payout_file import FAULTS, disturbed, read_csv, total, write_csv


def test_the_file_is_read_as_text_and_its_amounts_exactly(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "payouts.csv", 6, seed=0)
    records = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    rows = read_csv(file)
    assert [str(row.amount) for row in rows] == [record["amount"] for record in records]
    assert all(isinstance(row.amount, Decimal) for row in rows)
    assert rows[0].instrument.phone_number == records[0]["instrument.phone_number"] == "+233200000001"
    assert rows[2].instrument.account_number == records[2]["instrument.account_number"] == "0000000003"
    assert rows[2].instrument.bank_code == "0042"


def test_references_are_unique_and_the_sum_is_that_of_the_file(tmp_path: Path) -> None:
    rows = read_csv(write_csv(tmp_path / "payouts.csv", 500, seed=3))
    assert len({row.reference for row in rows}) == 500
    assert total(rows) == sum(row.amount for row in rows)
    assert all(1 <= row.amount < 500 and row.amount.as_tuple().exponent == -2 for row in rows)


def test_a_seed_gives_the_same_file_again_and_another_seed_another(tmp_path: Path) -> None:
    texts = [write_csv(tmp_path / "payouts.csv", 20, seed).read_text() for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]


def test_no_account_is_one_of_the_sandbox_s_magic_numbers(tmp_path: Path) -> None:
    rows = read_csv(write_csv(tmp_path / "payouts.csv", 20_000, seed=0))
    numbers = [str(row.instrument.phone_number or row.instrument.account_number) for row in rows]
    assert not [number for number in numbers if number[-6:-2] == "9900"]


@pytest.mark.parametrize(("count", "seed"), [(1, 7), (2, 999_999), (3, 1), (4, 0), (5, 7), (1000, 1)])
def test_each_fault_meets_a_payout_of_its_own_as_far_as_there_are_payouts(
    count: int, seed: int, tmp_path: Path
) -> None:
    rows = read_csv(write_csv(tmp_path / "payouts.csv", count, seed))
    faults = disturbed(rows, seed)
    assert len(faults) == min(count, len(FAULTS))
    assert set(faults) <= {row.reference for row in rows}
    assert list(faults.values()) == list(FAULTS)[: len(faults)]
