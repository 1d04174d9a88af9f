"""The examples and exit codes at the end of each command's help. Imports nothing that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from cyclopts import App

EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 refused, 2 usage, 3 outcome unknown, 75 stopped and resumable, "
    "130 interrupted by Ctrl-C, 141 the reader of the output left."
)
_DATABASE: Final = "postgresql://db/payouts"
_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "api": ("GET '/payouts?status=failed'", "POST /payouts --write --body payout.json"),
    "checkouts create": ("--amount 50 --currency GHS",),
    "demo": ("", "--payouts 100 --seed 7", "--processes 3"),
    "doctor": ("", "--probe", "--json"),
    "guard begin": ("--guard guard.toml",),
    "guard show": ("", "--guard guard.toml"),
    "mcp": ("", "--write"),
    "payouts batches": (_DATABASE,),
    "payouts cancel-rest": (f"{_DATABASE} --batch-id june",),
    "payouts confirm": (f"{_DATABASE} --batch-id june",),
    "payouts create": (
        "--reference invoice-7 --amount 50 --currency GHS \\\n"
        "  --method mobile_money --instrument account.json --wait 15m",
    ),
    "payouts export": ("june.csv.ledger out.csv", "june.csv.ledger to-check.csv --state rejected"),
    "payouts find": ("invoice-7", "invoice-7 --wait 15m"),
    "payouts forget": ("june.csv.ledger --before 2026-06-30 --dry-run",),
    "payouts pause": ('june.csv.ledger --reason "wrong file"',),
    "payouts reconcile": ("june.csv.ledger",),
    "payouts resume": (f"{_DATABASE} --batch-id june",),
    "payouts retry-failed": ("june.csv.ledger --dry-run", "june.csv.ledger --row 17"),
    "payouts run": (
        "june.csv --dry-run",
        "june.csv --page",
        'june.csv --batch-id june --confirm-total "XOF 1200.50"',
        "june.csv --wait-final 2h",
        f"--ledger {_DATABASE} --batch-id june",
        'june.xlsx --sheet Salaries \\\n  --map "Phone=instrument.phone_number"',
    ),
    "payouts show": ("june.csv.ledger 17", "june.csv.ledger salary-4711"),
    "payouts status": ("june.csv.ledger",),
    "payouts template": ("june.xlsx",),
    "payouts watch": ("june.csv.ledger", "june.csv.ledger --page"),
    "sandbox": ("", "--scenario slow:200ms --speed 60"),
    "sandbox exec": ("-- python first.py", "--fail-on-advice -- pytest"),
    "webhooks listen": ("", "--forward http://127.0.0.1:8000/hooks"),
    "webhooks resend": ("wh_00000001",),
}
"""{command: what may follow it}."""


def examples(command: str) -> tuple[str, ...]:
    """The examples of a command, such as `payouts run`: whole command lines; none of a group of commands.

    One that is long continues on a second line, after a backslash.
    """
    return tuple(f"payments {command} {rest}".rstrip() for rest in _SHOWN.get(command, ()))


def commands_of(app: App, name: str = "") -> Iterator[tuple[str, App]]:
    """Each command below an app with its name, such as `payouts run`, groups of commands included."""
    for word in app:
        if not word.startswith("-"):
            inner = f"{name} {word}".strip()
            yield inner, app[word]
            yield from commands_of(app[word], inner)


def complete_help(app: App) -> None:
    """End the help of each command with its examples, and the exit codes unless it has explained its own."""
    for name, command in commands_of(app):
        said = getattr(command.default_command, "__doc__", None) or ""
        lines = "  \n".join(f"`{line}`" for each in examples(name) for line in each.splitlines())
        parts = (f"Examples:\n\n{lines}" * bool(lines), EXIT_CODES * ("Exit codes:" not in said))
        command.help_epilogue = "\n\n".join(filter(None, parts))
