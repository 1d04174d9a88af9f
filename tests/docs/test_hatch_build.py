"""What a build adds: the description as an index shows it, project URLs, the bill of materials."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.docs.pages import ROOT, page

ADDRESS = "https://code.test/shop/payments-sdk"


@pytest.fixture(scope="module")
def hooks() -> Any:
    return SimpleNamespace(**runpy.run_path(str(ROOT / "hatch_build.py")))


def test_links_to_files_become_absolute(hooks: Any) -> None:
    text = "[Limits](docs/limits.md#429) and [`a.py`](a.py), [here](#x), [there](https://x.test)\n```\n[a](b)\n```\n"
    assert hooks.absolute_links(text, "https://h.test/f") == (
        "[Limits](https://h.test/f/docs/limits.md#429) and [`a.py`](https://h.test/f/a.py), "
        "[here](#x), [there](https://x.test)\n```\n[a](b)\n```\n"
    )
    assert hooks.absolute_links(text, None) == (
        "Limits (`docs/limits.md`) and `a.py`, [here](#x), [there](https://x.test)\n```\n[a](b)\n```\n"
    )


@pytest.mark.parametrize("repository", ["", ADDRESS])
def test_the_description_has_no_link_that_an_index_cannot_follow(hooks: Any, repository: str) -> None:
    text = hooks.description(page("README.md"), repository, "0.1.0")
    assert not re.findall(r"\]\((?![a-z]+:|#)[^)]*\)", text)
    assert (f"({ADDRESS}/blob/v0.1.0/docs/bulk.md#what-is-guaranteed)" in text) is bool(repository)


@pytest.mark.parametrize("repository", ["", f"{ADDRESS}/"])
def test_the_hook_sets_what_the_project_leaves_open(
    hooks: Any, repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROJECT_URL", repository)
    metadata: dict[str, Any] = {"version": "0.1.0"}
    hooks.Description(str(ROOT), {}).update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert metadata["urls"].get("Source") == (ADDRESS if repository else None)


def test_the_bill_of_materials_lists_what_an_installer_is_asked_for(hooks: Any) -> None:
    extras = {"cli": ["rich>=14"], "all": ["payments-sdk[cli]", "rich>=14", "attrs>=24.2"]}
    bill = hooks.bill_of_materials("payments-sdk", "0.1.0", "MIT", ["attrs>=24.2"], extras)
    assert {item["name"]: (item["scope"], item["properties"]) for item in bill["components"]} == {
        "attrs": ("required", [{"name": "requirement", "value": ">=24.2"}]),
        "rich": (
            "optional",
            [
                {"name": "requirement", "value": ">=14"},
                {"name": "extra", "value": "cli"},
                {"name": "extra", "value": "all"},
            ],
        ),
    }
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/payments-sdk@0.1.0"
    assert bill["dependencies"][0]["dependsOn"] == ["pkg:pypi/attrs", "pkg:pypi/rich"]


def test_the_bill_is_written_for_the_builder_and_removed(hooks: Any) -> None:
    core = SimpleNamespace(
        name="payments-sdk", license_expression="MIT", dependencies=["attrs>=24.2"], optional_dependencies={}
    )
    project = SimpleNamespace(core=core, version="0.1.0")
    hook = hooks.BillOfMaterials(str(ROOT), {}, None, project, "", "wheel")
    data: dict[str, Any] = {"sbom_files": []}
    hook.initialize("standard", data)
    (path,) = map(Path, data["sbom_files"])
    assert json.loads(path.read_text())["bomFormat"] == "CycloneDX"
    hook.finalize("standard", data, "")
    assert not path.parent.exists()
