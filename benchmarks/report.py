"""`python -m benchmarks.report`: writes results.json out, into tables between markers and into charts.

A part `<!-- bench:NAME -->` … `<!-- /bench -->` of a page is made, never typed: NAME is a suite, `targets`,
`highlights` or `peers`. `--check` only says what is not as the results have it.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import results
from benchmarks.charts import bars, charted
from benchmarks.figures import Figure, number, table
from benchmarks.machine import told
from benchmarks.peers import pin
from benchmarks.results import Reached
from benchmarks.worker import ROOT

IMAGES = ROOT / "docs" / "images"
PAGES = (ROOT / "README.md", ROOT / "docs" / "performance.md", results.HERE / "README.md")
PART = re.compile(r"(<!-- bench:(\w+) -->\n).*?(<!-- /bench -->)", re.DOTALL)
HIGHLIGHTS = (
    (
        "call_cost",
        "CPU of payouts.create over aiohttp by hand, 64 in flight, the call",
        "CPU of `payouts.create` with a customer and metadata, all built for each call (plain aiohttp = 1)",
    ),
    (
        "call_cost",
        "CPU of payouts.create over aiohttp by hand, 64 in flight, the call, both on uvloop",
        "… on uvloop, both",
    ),
    (
        "call_cost",
        "instructions of payouts.create over aiohttp by hand, 64 in flight, the call, arguments made for",
        "… instructions executed",
    ),
    (
        "call_cost",
        "instructions of payouts.create over aiohttp by hand, 64 in flight, the call, refused",
        "… instructions of a refusal, a 422",
    ),
    (
        "call_cost",
        "over stripe on aiohttp, 64 in flight",
        "CPU of `payouts.create` (stripe's async client = 1)",
    ),
    ("call_cost", "over openai on aiohttp, 64 in flight", "… (openai's async client = 1)"),
    (
        "blocking",
        "a second over requests.Session, 1 thread,",
        "blocking calls a second, one thread, uvloop (the library `requests` = 1; more is better)",
    ),
    ("blocking", "a second over requests.Session, 32 threads,", "… 32 threads"),
    (
        "decode",
        "reading a page of 100 payouts",
        "CPU of reading a page of 100 payouts (`json.loads` of it = 1)",
    ),
    (
        "limiter",
        "share of 60,000",
        "how much of the limit, 60,000 writes a minute, one process uses without a 429 (more is better)",
    ),
    (
        "bulk",
        "without a ledger, a file",
        "CPU of a row of a batch, every commit synced (a loop with plain aiohttp and no ledger = 1)",
    ),
)
"""What README.md shows: the first figure of a suite whose text has these words, and what to call it."""


NAMED = ("aiohttp", "httpx", "requests", "urllib3", "stripe", "openai", "aiolimiter")
"""The peers whose versions are told."""
TITLES = {
    "blocking_rate_1": "Blocking calls a second, one thread, over requests.Session (1.00)",
    "blocking_rate_32": "Blocking calls a second, 32 threads, over requests.Session (1.00)",
    "start_import": "CPU of an import, over import aiohttp (1.00)",
    "memory_in_flight": "Memory of a call under way, KiB",
    "growth_cpu": "CPU of a call by how many are under way, µs",
}
"""Of charts whose suite names none."""


def pages(suites: Sequence[Reached], files: Sequence[Path] = PAGES) -> dict[Path, str]:
    """Each page that exists, as it should be."""
    parts = made(suites)
    found = {}
    for file in files:
        if file.exists():
            text = file.read_text(encoding="utf-8")
            found[file] = PART.sub(lambda match: _filled(match, parts), text)
    return found


def _filled(match: re.Match[str], parts: dict[str, str]) -> str:
    """A part that nothing is known of stays as it is."""
    begin, name, end = match.groups()
    return f"{begin}\n{parts[name]}\n\n{end}" if name in parts else match.group()


def made(suites: Sequence[Reached]) -> dict[str, str]:
    """The parts, by name."""
    parts = {each.name: f"{table(each.figures)}\n\n{_circumstances(each)}" for each in suites}
    parts["targets"] = results.judged(suites)
    parts["highlights"] = highlights(suites)
    parts["peers"] = f"Peers: {', '.join(f'{name} {pin(name)}' for name in NAMED)}."
    return parts


def _circumstances(reached: Reached) -> str:
    kind = "A quick run" if reached.quick else "A full run"
    when = f", begun {reached.began}" if reached.began else ""
    took = f"It took {reached.seconds:.0f} s; load {reached.load} at its end."
    return f"{kind}{when}, {told(reached.machine)} {took}"


def highlights(suites: Sequence[Reached]) -> str:
    """The table of README.md."""
    rows = ["| one process, one core; async calls: 64 in flight | median | range |", "| --- | --- | --- |"]
    for name, words, called in HIGHLIGHTS:
        figure = next(
            (f for each in suites if each.name == name for f in each.figures if words in f.what), None
        )
        if figure is not None:
            rows.append(f"| {called} | {_value(figure, figure.median)} | {_range(figure)} |")
    return "\n".join(rows)


def _range(figure: Figure) -> str:
    ends = figure.low, figure.high
    return "" if figure.low == figure.high else " to ".join(_value(figure, end) for end in ends)


def _value(figure: Figure, value: float) -> str:
    return number(value) + {"×": "", "%": " %"}.get(figure.unit, f" {figure.unit}")


def images(suites: Sequence[Reached]) -> dict[Path, str]:
    """Each chart's file."""
    return {
        IMAGES / f"{each.name}_{chart}.svg": bars(_title(each, chart), figures)
        for each in suites
        for chart, figures in charted(each.figures).items()
    }


def _title(reached: Reached, chart: str) -> str:
    return reached.charts.get(chart) or TITLES.get(f"{reached.name}_{chart}", reached.name)


def written(suites: Sequence[Reached]) -> dict[Path, str]:
    """Every file that is made of results."""
    about = "\n\n".join(f"## {each.name}\n\n{each.question}\n\n{made([each])[each.name]}" for each in suites)
    head = f"# {_title_of(suites)}\n\nMade by `nox -s bench`."
    whole = {results.HERE / "results.md": f"{head}\n\n{results.judged(suites)}\n\n{about}\n"}
    return {**images(suites), **pages(suites), **whole}


def _title_of(suites: Sequence[Reached]) -> str:
    """Suites that were run one by one stand side by side, and are not of one run."""
    runs = {each.began for each in suites}
    if len(runs) == 1 and runs != {""} and not any(each.quick for each in suites):
        return "What the last full run reached"
    return "What the last run of each suite reached"


def renew(suites: Sequence[Reached]) -> None:
    """Write what has changed."""
    for file, text in written(suites).items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def outdated(suites: Sequence[Reached]) -> list[str]:
    """The files that differ from the results."""
    return [
        file.relative_to(ROOT).as_posix()
        for file, text in written(suites).items()
        if not file.exists() or file.read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """0, or 1 when `--check` finds something."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.report", description=__doc__)
    parser.add_argument("--check", action="store_true")
    suites = list(results.read().values())
    if not parser.parse_args().check:
        renew(suites)
        return 0
    late = outdated(suites)
    print("\n".join(f"{file} is not as benchmarks/results.json has it" for file in late))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
