"""Pages of the reference, by subject: each public name is described once, and found under all its paths.

What the two packages have each for themselves, such as the client, is one entry with a switch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import griffe

from .pages import ASYNC, BLOCKING, tab

ROOT: Final = Path(__file__).resolve().parents[2]
LISTED: Final = ROOT / "tests" / "public_names.txt"
PACKAGES: Final = ("payments_async", "payments_sync")
SUBJECTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "client": ("The client", ["client", "_rate_limit", "params.prepared", "models._response"]),
    "checkouts": (
        "Checkouts",
        [
            *("resources.checkouts", "models.checkouts", "params.requests.CheckoutRe"),
            *("params.requests.Restriction", "params.requests.Appearance"),
        ],
    ),
    "payment-intents": (
        "Payment intents",
        [
            *("resources.payment_intents", "models.payments", "params.requests"),
            *("models.statuses.PaymentIntentStatus", "models.statuses.PaymentAttemptStatus"),
            "models.statuses.NextActionType",
        ],
    ),
    "payouts": (
        "Payouts",
        [
            *("resources.payouts", "models.payouts", "params.requests.Payout", "params.requests.Customer"),
            *("params.requests.Instrument", "models.statuses.PayoutStatus"),
        ],
    ),
    "methods": (
        "Methods",
        ["resources.methods", "models.common.Method", "models.statuses.MethodHealth"],
    ),
    "records": (
        "Lists and records",
        [
            *("models", "params.requests.Money", "params.requests.Pairs", "params.requests.Params"),
            *("params.requests.decimal_if_readable", "_codec.decode"),
        ],
    ),
    "errors": ("Errors", ["errors"]),
    "webhooks": ("Webhooks", ["webhooks"]),
    "bulk": ("Bulk", ["bulk"]),
    "bulk-sources": ("Bulk: files", ["bulk.sources"]),
    "guard": ("Guards", ["guard"]),
    "fastapi": ("FastAPI", ["fastapi"]),
    "events": ("Events", ["events", "_emitter"]),
    "otel": ("OpenTelemetry", ["otel"]),
    "sandbox": ("The sandbox", ["sandbox"]),
    "testing": ("Testing", ["testing"]),
    "arguments": ("Arguments, as types", ["arguments"]),
}
"""{page: its title, and the modules and names of the packages that it describes}; the longest match decides.

The first is the module whose docstring opens the page."""


def public_names() -> dict[str, list[str]]:
    """{public module: its public names}, as `tests/test_public_names.py` holds them against the packages."""
    found: dict[str, list[str]] = {}
    module = ""
    for line in LISTED.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            found[module] += line.split()
        elif line and not line.startswith("#"):
            module = line
            found[module] = []
    return found


def subject_of(path: str) -> str:
    """The page that describes what is defined at a path; `LookupError` when no subject has it."""
    inside = path.partition(".")[2]
    pages = {prefix: page for page, (_, prefixes) in SUBJECTS.items() for prefix in prefixes}
    matches = [prefix for prefix in pages if inside.startswith(prefix)]
    if not matches:
        raise LookupError(f"{path}: no subject of tools/site/reference.py describes it")
    return pages[max(matches, key=len)]


class Reference:
    """The public names of both packages, and where each is described."""

    def __init__(self) -> None:
        loader = griffe.GriffeLoader(search_paths=[ROOT])
        for package in PACKAGES:
            loader.load(package)
        loader.resolve_aliases(implicit=True, external=False)
        self._objects = loader.modules_collection
        self.modules = public_names()
        self.modules["payments_async.arguments"] = self._classes("payments_async.arguments")
        for package in PACKAGES:
            for part in ("checkouts", "methods", "payment_intents", "payouts"):
                self.modules[f"{package}.resources.{part}"] = self._classes(f"{package}.resources.{part}")
        self._aliases: dict[str, list[str]] = {}
        for module, names in self.modules.items():
            for name in names:
                if not name.startswith("__"):
                    self._aliases.setdefault(self.canonical(module, name), []).append(f"{module}.{name}")

    def canonical(self, module: str, name: str) -> str:
        """The path where a public name is defined."""
        return str(self._objects[f"{module}.{name}"].canonical_path)

    def pages(self) -> Iterator[tuple[str, str]]:
        """Each page's name and text."""
        yield "reference/names.md", "\n".join(self._index())
        for page in SUBJECTS:
            yield f"reference/{page}.md", "\n".join(self._page(page))

    def _classes(self, module: str) -> list[str]:
        members = self._objects[module].members.items()
        return [
            name
            for name, member in members
            if not name.startswith("_") and not member.is_alias and member.is_class
        ]

    def _index(self) -> Iterator[str]:
        yield "# Every public name\n\nBy the module that it is imported from.\n"
        for module, names in sorted(self.modules.items()):
            yield f"## {module}\n"
            shown = [name for name in names if not name.startswith("__")]
            paths = [(name, self.canonical(module, name)) for name in shown]
            yield ", ".join(f"[`{name}`]({subject_of(path)}.md#{module}.{name})" for name, path in paths)
            yield ""

    def _page(self, page: str) -> Iterator[str]:
        title, (opening, *_) = SUBJECTS[page]
        yield f"# {title}\n"
        module = f"{PACKAGES[0]}.{opening}"
        yield from directive(module, members="[]", show_root_heading="false", show_root_toc_entry="false")
        twins: dict[tuple[str, str], list[str]] = {}
        for path in sorted(self._aliases, key=lambda path: (self._place(page, path), path)):
            if subject_of(path) == page:
                part, name = path.split(".")[1], path.rpartition(".")[2].removeprefix("Async")
                twins.setdefault((part, name), []).append(path)
        for paths in twins.values():
            if len(paths) == 1 or paths[1].startswith(PACKAGES[0]):
                for path in paths:
                    yield from self._entry(path, f" ({path.split('.')[3]})" if paths[1:] else "")
                continue
            for kind, path in zip((ASYNC, BLOCKING), paths, strict=True):
                same = paths[0].endswith(f".{path.rpartition('.')[2]}") and kind == BLOCKING
                yield tab(kind, "\n".join(self._entry(path, f" ({kind.lower()})" if same else "")))

    def _place(self, page: str, path: str) -> int:
        """Where on a page an object stands: in the order of the page's modules."""
        inside = path.partition(".")[2]
        prefixes = SUBJECTS[page][1]
        return next((place for place, each in enumerate(prefixes) if inside.startswith(each)), 0)

    def _entry(self, path: str, which: str = "") -> Iterator[str]:
        """An object; `which` tells it in the table of contents from another one of its name."""
        for alias in self._aliases[path]:
            if alias != path:
                yield f'<a id="{alias}"></a>'
        yield ""
        name = path.rpartition(".")[2]
        which = which or " (class)" * (name == "Header")  # the site has a landmark of that name
        made_by_client = {"merge_init_into_class": "false"} if ".resources." in path else {}
        yield from directive(path, heading=name, toc_label=f"{name}{which}", **made_by_client)


def directive(path: str, **options: str) -> Iterator[str]:
    """What mkdocstrings replaces with the description of an object."""
    yield f"::: {path}"
    yield "    options:"
    yield from (f"      {name}: {value}" for name, value in options.items())
    yield ""
