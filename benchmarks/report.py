"""`python -m benchmarks.report`: writes results.json into the tables between markers.

A part `<!-- bench:NAME -->` … `<!-- /bench -->` of a page is made, never typed: NAME is a suite, `highlights`
or `peers`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import peers
from benchmarks.figures import Figure, Reached, number, read, table
from benchmarks.worker import ROOT

PAGES = (ROOT / "README.md", ROOT / "benchmarks" / "README.md")
PART = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench -->)", re.DOTALL)
BY_HAND = "CPU of payouts.create over aiohttp by hand, 64 in flight"
COUNTED = "instructions of payouts.create over aiohttp by hand, 64 in flight"
HIGHLIGHTS = {
    BY_HAND: (
        "CPU of `payouts.create` with a customer and metadata, all built for each call (plain aiohttp = 1)"
    ),
    f"{BY_HAND}, both on uvloop": "… on uvloop, both",
    COUNTED: "… instructions executed",
    f"{COUNTED}, refused with a 422": "… instructions of a refusal, a 422",
    "CPU of payouts.create over stripe, 64 in flight": "CPU of `payouts.create` (stripe's async client = 1)",
    "CPU of payouts.create over openai, 64 in flight": "… (openai's async client = 1)",
    "CPU of a blocking payout over requests.Session, 1 thread": (
        "CPU of a blocking call, one thread, uvloop (the library `requests` = 1)"
    ),
    "CPU of a blocking payout over requests.Session, 32 threads": "… 32 threads",
    "reading a page of 100 payouts over json.loads": (
        "CPU of reading a page of 100 payouts (`json.loads` of it = 1)"
    ),
    "share of 60,000 a minute that is used, from the second minute on": (
        "how much of the limit, 60,000 writes a minute, one process uses without a 429 (more is better)"
    ),
    "CPU of a row over aiohttp by hand without a ledger, a file": (
        "CPU of a row of a batch, every commit synced (a loop with plain aiohttp and no ledger = 1)"
    ),
}
"""What README.md shows: the figure with exactly these words, and what to call it."""


def parts(suites: Mapping[str, Reached]) -> dict[str, str]:
    """What stands between markers, by name."""
    versions = peers.pins()
    return {
        **{name: f"{table(each.figures)}\n\n{each.circumstances}" for name, each in suites.items()},
        "highlights": highlights([figure for each in suites.values() for figure in each.figures]),
        "peers": f"Peers: {', '.join(f'{name} {versions[name]}' for name in peers.NAMED)}.",
    }


def highlights(figures: Sequence[Figure]) -> str:
    """The table of README.md."""
    rows = ["| one process, one core; async calls: 64 in flight | median | range |", "| --- | --- | --- |"]
    known = {figure.what: figure for figure in figures}
    for what, called in HIGHLIGHTS.items():
        if figure := known.get(what):
            unit = "" if figure.unit == "×" else f" {figure.unit}"
            span = "" if figure.low == figure.high else f"{number(figure.low)} to {number(figure.high)}"
            rows.append(f"| {called} | {number(figure.median)}{unit} | {span} |")
    return "\n".join(rows)


def filled(page: str, made: Mapping[str, str]) -> str:
    """A page with its parts; one that nothing is known of stays as it is."""

    def part(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        return f"{begin}\n{made[name]}\n\n{end}" if name in made else match.group()

    return PART.sub(part, page)


def pages() -> dict[Path, str]:
    """Each page as it should be."""
    made = parts(read())
    return {file: filled(file.read_text(encoding="utf-8"), made) for file in PAGES}


def renew() -> None:
    """Write the pages."""
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    renew()
