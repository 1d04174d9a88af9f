"""The programs of README.md and docs/ run as their reader runs them.

Those of a page run in their order, in one folder, against one sandbox: Python as it stands, `$` lines in a
shell. A program that the text saves under a name is run by the `$` line that names it. A block that is not
run has `<!-- not run: why -->` above it. Python may use `await` at the top level, as if in a coroutine.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from payments_async.sandbox import Sandbox
from tests.docs.pages import GUIDES, ROOT
from tests.docs.snippets import Snippet, all_blocks
from tools.site.pages import PROGRAM

RUN = [
    block
    for block in all_blocks()
    if block.not_run is None and (block.info in ("python", "console") or block.saved_as)
]
PAGES = sorted({block.file for block in RUN})
FIRST = ("README.md", "docs/getting-started.md", "docs/tutorial.md")
ELSEWHERE = re.compile(r"pip install [^&]*|python3 -m venv .*|\. .venv/bin/activate|payments sandbox( +#.*)?")
"""Shell lines that have been done: the package is installed here, and the page's sandbox runs."""
PYTEST = """[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
addopts = -p no:cacheprovider -W error -p pytest_asyncio.plugin -p payments_async.testing._plugin
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=() if page in FIRST else pytest.mark.slow) for page in PAGES]
)
def test_the_programs_of_a_page_run_in_order(
    page: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocks = [block for block in RUN if block.file == page]
    shell = "\n".join(block.code for block in blocks if block.info == "console")
    # A seed of its own gives each page a key, and with it rate limits, that no other test knows.
    # A scenario, and no rule: rules come before what a program asks for.
    with Sandbox(seed=900_000 + PAGES.index(page), scenario="complete immediate") as sandbox:
        monkeypatch.setenv("PAYMENTS_API_KEY", sandbox.api_key)
        monkeypatch.setenv("PAYMENTS_BASE_URL", sandbox.base_url)
        monkeypatch.setenv("WEBHOOK_SECRET", "for the pages alone, and more than 32 bytes")
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.chdir(tmp_path)
        for link in PROGRAM.finditer((ROOT / page).read_text(encoding="utf-8")):  # the page shows them
            shutil.copy((ROOT / page).parent / link["path"], tmp_path)
        for block in blocks:
            try:
                if block.info == "console":
                    run_in_shell(block, sandbox)
                elif takes_fixtures(block):
                    run_with_pytest(block)
                elif block.saved_as and (block.saved_as in shell or block.info != "python"):
                    Path(block.saved_as).write_text(block.code, encoding="utf-8")
                else:
                    run_here(block)
            except BaseException as error:
                error.add_note(str(block))
                raise
    gc.collect()  # Python 3.13 warns of a connection that is left open: here, and not in a later test


def run_here(block: Snippet) -> None:
    """Run a block in a fresh namespace, then its test functions."""
    names: dict[str, Any] = {"__name__": "snippet"}
    tree = ast.parse(block.code, block.file)
    ast.increment_lineno(tree, block.line - 1)
    code = compile(tree, block.file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    finish(eval(code, names))
    for name, value in list(names.items()):
        if name.startswith("test_"):
            finish(value())


def finish(value: Any) -> None:
    if inspect.iscoroutine(value):
        asyncio.run(value)


def takes_fixtures(block: Snippet) -> bool:
    """Whether it holds tests for pytest, with our plugin's fixtures."""
    return re.search(r"^(async )?def test_\w+\([^)]", block.code, re.MULTILINE) is not None


def run_with_pytest(block: Snippet) -> None:
    Path("pytest.ini").write_text(PYTEST)
    Path("test_page.py").write_text(block.code, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # looking for what is installed takes a second
        told = shell_says("python -m pytest -q test_page.py")
    assert f"{len(re.findall(r'^(?:async )?def test_', block.code, re.MULTILINE))} passed" in told


def run_in_shell(block: Snippet, sandbox: Sandbox) -> None:
    """Run a block's `$` lines. The others are what they print: figures, blanks and the host may differ."""
    lines = block.code.replace("\\\n", "").replace("http://127.0.0.1:7788", sandbox.base_url[: -len("/v1")])
    commands = [line[2:] for line in lines.splitlines() if line.startswith("$ ")]
    commands = [command for command in commands if not ELSEWHERE.fullmatch(command)]
    # a sandbox of the command's own, in which what is waited for comes at once
    told = shell_says("\n".join(commands).replace("sandbox exec --", "sandbox exec --speed 2000 --"))
    for line in lines.splitlines():
        if not line.startswith("$ ") and line.strip() != "…":
            pattern = re.escape(line).replace("host\\-1", r"\S+").replace("…", ".*")
            pattern = re.sub(r"(\\ )+", " +", re.sub(r"\d[\d,.]*", r"\\d[\\d,.]*", pattern))
            assert re.search(pattern, told), f"not printed: {line}\n{told}"


def shell_says(script: str) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.returncode}\n{done.stdout}"
    return done.stdout


def test_every_block_is_run_or_says_why_not() -> None:
    shown = {"py", "json", "text", "toml", "ini", "yaml"}
    assert {block.info for block in all_blocks()} <= {"python", "console", *shown}


def test_readme_and_every_guide_have_programs() -> None:
    assert set(GUIDES) <= {block.file for block in RUN if block.info == "python"}
