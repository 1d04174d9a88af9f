"""Help in two levels, and the examples of each command. Imports nothing that works."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from cyclopts import App, Group, Parameter
from cyclopts.help import DefaultFormatter, HelpPanel
from rich.console import Console, ConsoleOptions
from rich.text import Text

_ALL: Final = "--help-all"
EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 refused, 2 usage, 3 outcome unknown, 75 stopped and resumable, "
    "130 interrupted by Ctrl-C, 141 the reader of the output left."
)


def _named_only(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    """With `--help-all` the panel as any other; else the names of its options."""
    if getattr(console, "shows_all", False):
        DefaultFormatter()(console, options, panel)
        return
    names = ", ".join(entry.names[0] for entry in panel.entries)
    console.print(Text(f"{len(panel.entries)} more, which --help-all explains: {names}", "dim"))


USED: Final = Parameter(group="Parameters")
"""For an option that people use, of a class of options whose others are in `MORE`."""
MORE: Final = Group("More parameters", help_formatter=_named_only, sort_key=1)

_DATABASE: Final = "postgresql://db/payouts"
_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "api": ("GET '/payouts?status=failed'", "POST /payouts --write --body payout.json"),
    "checkouts create": ("--amount 50 --currency GHS",),
    "demo": ("", "--payouts 100 --seed 7"),
    "doctor": ("", "--probe", "--json"),
    "guard begin": ("--guard guard.toml",),
    "guard check": ("june.csv --guard guard.toml",),
    "guard show": ("", "--refusals 20"),
    "mcp": ("", "--write"),
    "payouts batches": (_DATABASE,),
    "payouts cancel-rest": (f"{_DATABASE} --batch-id june",),
    "payouts confirm": (f"{_DATABASE} --batch-id june",),
    "payouts create": (
        "--reference invoice-7 --amount 50 --currency GHS \\\n"
        "  --method mobile_money --instrument account.json",
    ),
    "payouts export": (
        "june.csv.ledger out.csv",
        "june.csv.ledger to-check.csv --state rejected",
        "june.xlsx.ledger june-report.xlsx",
    ),
    "payouts find": ("invoice-7",),
    "payouts forget": ("june.csv.ledger --before 2026-06-30 --dry-run",),
    "payouts list": ("--status failed --currency GHS",),
    "payouts pause": ('june.csv.ledger --reason "wrong file"',),
    "payouts reconcile": ("june.csv.ledger", "june.csv.ledger --since 2026-06-01"),
    "payouts resume": (f"{_DATABASE} --batch-id june",),
    "payouts retry-failed": ("june.csv.ledger --dry-run", "june.csv.ledger --row 17"),
    "payouts run": (
        "june.csv --dry-run",
        "june.csv --page",
        'june.csv --batch-id june --confirm-total "XOF 1200.50"',
        "june.csv --wait-final 2h",
        f"--ledger {_DATABASE} --batch-id june",
        "june.xlsx --sheet Salaries",
        'june.xlsx --map "Phone=instrument.phone_number" \\\n  --map-file salaries.toml',
    ),
    "payouts show": ("june.csv.ledger 17", "june.csv.ledger salary-4711"),
    "payouts status": ("june.csv.ledger",),
    "payouts template": ("june.xlsx",),
    "payouts wait": ("--reference invoice-7",),
    "payouts watch": ("june.csv.ledger", "june.csv.ledger --page"),
    "sandbox": ("", "--scenario slow:200ms --speed 60"),
    "sandbox exec": ("-- python first.py", "--fail-on-advice -- pytest"),
    "trigger": ("payout.failed --reference invoice-7", "payment.completed --id pi_00000001"),
    "webhooks listen": ("", "--forward http://127.0.0.1:8000/hooks"),
    "webhooks resend": ("wh_00000001",),
}
"""{command: what may follow it}."""
_FILES: Final[Mapping[str, tuple[str, str]]] = {
    "payouts run": (
        "A file for --map-file, here salaries.toml:",
        """
[columns]
"Staff no." = "row_key"
Salary = "amount"
Remarks = ""  # left out
[constants]
currency = "GHS"
method = "mobile_money"
instrument.country = "GH"
""",
    )
}
"""{command: a file that an option of it takes, for `--help-all`}."""


def with_help_flag(argv: Sequence[str]) -> tuple[list[str], bool]:
    """A command line with `--help` for `--help-all`, and whether it had that. What follows `--` stays."""
    own = argv[: argv.index("--")] if "--" in argv else argv
    return ["--help" if word == _ALL else word for word in own] + [*argv[len(own) :]], _ALL in own


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


def complete_help(app: App, *, shows_all: bool = False) -> None:
    """End the help of each command with its examples, and the exit codes unless it has explained its own.

    `shows_all`: with what its files look like, too.
    """
    for name, command in commands_of(app):
        said = getattr(command.default_command, "__doc__", None) or ""
        title, file = _FILES.get(name, ("", "")) if shows_all else ("", "")
        parts = (
            _verbatim("Examples:", "\n".join(examples(name))),
            _verbatim(title, file.strip()),
            "" if "Exit codes:" in said else EXIT_CODES,
        )
        command.help_epilogue = "\n\n".join(filter(None, parts))


def _verbatim(title: str, text: str) -> str:
    """Markdown of a title with lines as they are below it; nothing without lines."""
    shown = "  \n".join(f"`{line}`" for line in text.splitlines())
    return f"{title}\n\n{shown}" if shown else ""
