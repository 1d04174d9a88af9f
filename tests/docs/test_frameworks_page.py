"""The page about frameworks shows lines of the programs that `nox -s examples` starts."""

from __future__ import annotations

import json
import re

from tests.docs.pages import ROOT, page
from tests.docs.snippets import FENCE

FOLDER = ROOT / "examples" / "frameworks"


def programs() -> str:
    """All that the programs and the notebook's cells say."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py")]
    cells = json.loads((FOLDER / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    return "\n".join([*texts, *("".join([*cell["source"], "\n"]) for cell in cells)])


def test_every_block_of_the_page_is_a_part_of_a_program() -> None:
    blocks = [found[2] for found in FENCE.finditer(page("docs/frameworks.md")) if found[1] == "py"]
    whole = programs()
    assert len(blocks) >= 10
    assert [block for block in blocks if block not in whole] == []


def test_the_notebook_is_kept_without_output() -> None:
    cells = json.loads((FOLDER / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_the_list_of_programs_names_every_file() -> None:
    named = set(re.findall(r"\]\(([\w./]+)\)", page("examples/frameworks/README.md")))
    files = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"}
    assert files <= {name.strip("/") for name in named} | {"README.md", "orders.py"}
