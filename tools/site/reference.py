"""Pages of the reference: each public name is described once, and found under every path that it has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import griffe

ROOT: Final = Path(__file__).resolve().parents[2]
LISTED: Final = ROOT / "tests" / "public_names.txt"
PACKAGES: Final = ("payments_async", "payments_sync")
"""They show names of their modules, which are described where they come from."""


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
        self._homes: dict[str, str] = {}
        for module in sorted(self.modules, key=lambda name: (name in PACKAGES, name)):
            for name in self.modules[module]:
                self._homes.setdefault(self.canonical(module, name), module)

    def canonical(self, module: str, name: str) -> str:
        """The path where a public name is defined."""
        return str(self._objects[f"{module}.{name}"].canonical_path)

    def pages(self) -> Iterator[tuple[str, str]]:
        """Each page's name and text."""
        for module, names in sorted(self.modules.items()):
            yield f"reference/{module}.md", "\n".join(self._page(module, names))

    def _classes(self, module: str) -> list[str]:
        members = self._objects[module].members.items()
        return [
            name
            for name, member in members
            if not name.startswith("_") and not member.is_alias and member.is_class
        ]

    def _page(self, module: str, names: list[str]) -> Iterator[str]:
        yield f"# {module}\n"
        yield from directive(module, members="[]", show_root_heading="false", show_root_toc_entry="false")
        shown = [name for name in names if not name.startswith("__")]
        for name in shown:
            path = self.canonical(module, name)
            if self._homes[path] == module:
                if path != f"{module}.{name}":
                    yield f'<a id="{module}.{name}"></a>\n'
                made_by_client = {"merge_init_into_class": "false"} if ".resources." in module else {}
                yield from directive(path, heading=name, toc_label=name, **made_by_client)
        elsewhere = [name for name in shown if self._homes[self.canonical(module, name)] != module]
        if elsewhere:
            yield "## Described elsewhere\n\n| Name | Module |\n|---|---|"
        for name in elsewhere:
            path = self.canonical(module, name)
            home = self._homes[path]
            yield f'| <a id="{module}.{name}"></a>[`{name}`]({home}.md#{path}) | `{home}` |'


def directive(path: str, **options: str) -> Iterator[str]:
    """What mkdocstrings replaces with the description of an object."""
    yield f"::: {path}"
    yield "    options:"
    yield from (f"      {name}: {value}" for name, value in options.items())
    yield ""
