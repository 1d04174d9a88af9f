"""Builds the site: pages, Zensical, llms.txt; then checks every link. Exits with 1 if anything is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import llms
from .links import broken, read
from .pages import ROOT, TITLES, assets, navigation, page_of, sources, with_tabs
from .reference import Reference, subject_of


def stage(folder: Path, repository: str, reference: Reference) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Write the pages and the settings of the site below `folder`; the navigation, and the pages' texts."""
    shutil.rmtree(folder, ignore_errors=True)
    texts = {page: page_of(file, repository) for file, page in sources().items()}
    pages = {page: with_tabs(text) for page, text in texts.items()} | dict(reference.pages())
    for name, text in pages.items():
        file = folder / "pages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    shutil.copytree(Path(__file__).with_name("assets"), folder / "pages" / "assets")
    for name in assets():
        file = folder / "pages" / name.removeprefix("docs/")
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, file)
    shown = navigation(page for page in pages if page.startswith("reference/"))
    nav = ", ".join(_section(title, names) for title, names in shown.items())
    added = [f"nav = [{nav}]", 'docs_dir = "pages"', 'site_dir = "site"']
    added += [f"repo_url = {json.dumps(repository)}"] if repository else []
    settings = Path(__file__).with_name("zensical.toml").read_text(encoding="utf-8")
    settings = settings.replace("[project]\n", "[project]\n" + "\n".join(added) + "\n", 1)
    settings = settings.replace("paths = []", f"paths = [{json.dumps(str(ROOT))}]")
    (folder / "zensical.toml").write_text(settings, encoding="utf-8")
    return shown, texts


def _section(title: str, names: Iterable[str]) -> str:
    """A section of the navigation, as TOML."""
    pages = (
        f"{{ {json.dumps(TITLES[name])} = {json.dumps(name)} }}" if name in TITLES else json.dumps(name)
        for name in names
    )
    return f"{{ {json.dumps(title)} = [{', '.join(pages)}] }}"


def missing_names(site: Path, reference: Reference) -> Iterator[str]:
    """Public names without an anchor on the page of their subject."""
    pages = read(site)
    for module, names in reference.modules.items():
        for name in names:
            if name != "__version__":
                subject = subject_of(reference.canonical(module, name))
                page = pages[(site / "reference" / subject / "index.html").resolve()]
                if f"{module}.{name}" not in page.anchors:
                    yield f"reference: {module}.{name} is not described"


def hidden_arguments(site: Path) -> Iterator[str]:
    """Pages of the reference with a method whose arguments are not shown one by one."""
    for page in sorted(site.glob("reference/*/index.html")):
        if ">Unpack<" in page.read_text(encoding="utf-8"):
            yield f"reference: {page.parent.name} shows **arguments"


def main(folder: Path) -> int:
    """Build and check."""
    reference = Reference()
    shown, texts = stage(folder, os.environ.get("PROJECT_URL", "").rstrip("/"), reference)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "zensical.toml"],
        cwd=folder,
        check=False,
    )
    if built.returncode:
        return built.returncode
    site = folder / "site"
    llms.write(site, shown, texts)
    wrong = [*broken(site), *missing_names(site, reference), *hidden_arguments(site)]
    print("\n".join(wrong) or f"{len(read(site))} pages in {site}: every link leads somewhere")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(*sys.argv[1:] or ["build/docs"])))
