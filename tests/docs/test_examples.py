"""Blocks of `py` on a page are lines of the programs that `nox -s examples` starts."""

from __future__ import annotations

import json
import re

from tests.docs.pages import ROOT, page
from tests.docs.snippets import all_blocks

FOLDER = ROOT / "examples" / "frameworks"


def test_every_block_of_py_is_a_part_of_a_program_or_says_why_it_is_not_run() -> None:
    whole = "\n".join(path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.py"))
    blocks = [block for block in all_blocks() if block.info == "py" and block.not_run is None]
    assert len(blocks) >= 4
    assert [str(block) for block in blocks if block.code not in whole] == []


def test_the_notebook_is_kept_without_output() -> None:
    cells = json.loads((FOLDER / "notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_the_list_of_programs_names_every_file() -> None:
    named = set(re.findall(r"\]\(([\w./]+)\)", page("examples/frameworks/README.md")))
    files = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"}
    assert files <= {name.strip("/") for name in named} | {"README.md", "orders.py"}
