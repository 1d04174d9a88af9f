"""The ledger that a command is about: a file or a database, whose password is shown nowhere."""

from __future__ import annotations

import pytest

from tests.support.batch_pages import LedgerAddress
from tests.support.payout_command import Exit, main

URL = "postgresql://pay:CANARY@db.internal/payroll"
SHOWN = "postgresql://pay:***@db.internal/payroll"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("june.ledger", "june.ledger"),
        ("a:CANARY@b.ledger", "a:CANARY@b.ledger"),  # a path
        (URL, SHOWN),
        ("postgresql://pay@db.internal:5432/payroll", "postgresql://pay@db.internal:5432/payroll"),
        ("postgresql://pay:CAN/A?R#Y@db/payroll", "postgresql://pay:***@db/payroll"),
        ("postgresql://pay:CAN@ARY@db/payroll", "postgresql://pay:***@db/payroll"),
        (
            "postgresql://pay:CANARY@a:5432,b:5433/x?sslmode=require",
            "postgresql://pay:***@a:5432,b:5433/x?sslmode=require",
        ),
        ("postgresql:///x?p%61ssword=CANARY", "postgresql:///x?p%61ssword=***"),
        ("postgresql:///x?sslpassword=CANARY", "postgresql:///x?sslpassword=***"),
        ("host=db user=pay password=CANARY dbname=x", "host=db user=pay password=*** dbname=x"),
        ("password = 'CANA RY\\' s' host=db", "password = *** host=db"),
        ("host=db sslpassword='CANARY", "host=db sslpassword=***"),
        ("host=db PASSWORD=CAN\\ ARY user=pay", "host=db PASSWORD=*** user=pay"),
        ("postgresql://host=db password=CANARY", "postgresql://host=db password=***"),
        ("mysql://pay:CANARY@db/payroll", "mysql://pay:***@db/payroll"),
    ],
)
def test_a_password_is_shown_nowhere(given: str, shown: str) -> None:
    address = LedgerAddress(given, "june")
    assert address.shown == shown
    assert address.has_visible_password == (given != shown)
    assert "CANARY" not in shown or given == shown
    assert given == shown or given not in repr(address) + address.shown + address.command("status")


@pytest.mark.parametrize(
    "given",
    [URL, "host=db password=CANARY dbname=x", "password='CAN ARY\\' x' host=db", "host=A. password=CANARY"],
)
@pytest.mark.parametrize(
    "argv",
    [
        ["status", "{}"],
        ["batches", "june.ledger", "{}"],
        ["{}"],
        ["run", "--concurrency", "{}"],
        ["run", "--concurrency={}"],
        ["status", "--such={}"],
    ],
)
def test_arguments_that_cannot_be_read_are_told_without_a_password(
    argv: list[str], given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["payouts", *(word.format(given) for word in argv)]) == Exit.USAGE
    printed = capsys.readouterr().err
    assert printed.startswith("payments: ")
    assert "ARY" not in printed


def test_commands_to_paste_name_the_ledger_and_its_batch_without_the_password() -> None:
    assert LedgerAddress("a b.ledger").command("status") == "payments payouts status 'a b.ledger'"
    given = LedgerAddress(URL, "june 26")
    assert (
        given.command("export", "out.csv")
        == f"payments payouts export '{SHOWN}' out.csv --batch-id 'june 26'"
    )
    default = LedgerAddress(URL, "june", is_default=True, is_insecure=True)
    assert (
        default.command("export", "out.csv")
        == "payments payouts export out.csv --batch-id june --insecure-database"
    )
