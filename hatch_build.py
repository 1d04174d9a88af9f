"""Build hooks: the description as an index shows it, project URLs, and the wheel's bill of materials.

An index shows the README without the files beside it. PROJECT_URL is the address of the repository, known
where a release is made (.github/workflows/release.yml): with it, links to files become absolute and the
project gets its URLs. Without it such links become text that names the file, and no URL is made up.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface
from packaging.requirements import Requirement

IMAGE: Final = re.compile(r"!\[[^\]]*\]\((?P<path>[^):]+)\)")
LINK: Final = re.compile(r"(?P<text>\[[^\]]+\])\((?![a-z]+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
FENCE: Final = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
NOTE: Final = "\nThe files that this text names are in the source distribution.\n"
BILL: Final = "payments-sdk.cdx.json"


def absolute_links(text: str, files: str | None) -> str:
    """A page with its links to files below the address `files`; if None, text that names them, no image."""

    def written(link: re.Match[str]) -> str:
        words, path = link["text"], link["path"]
        if files is not None:
            return f"{words}({files}/{path}{link['anchor'] or ''})"
        shown = words[1:-1]
        return shown if shown.strip("`") == path else f"{shown} (`{path}`)"

    def drawn(image: re.Match[str]) -> str:
        if files is None:
            return ""
        return image[0].replace(image["path"], f"{files.replace('/blob/', '/raw/')}/{image['path']}")

    parts = FENCE.split(IMAGE.sub(drawn, text))
    return "".join(part if part.startswith("```") else LINK.sub(written, part) for part in parts)


def description(readme: str, repository: str, version: str) -> str:
    """The README as an index shows it."""
    if not repository:
        return absolute_links(readme, None) + NOTE
    return absolute_links(readme, f"{repository}/blob/v{version}")


def project_urls(repository: str, version: str) -> dict[str, str]:
    """The URLs of a project whose repository has this address; none if it is empty."""
    if not repository:
        return {}
    files = f"{repository}/blob/v{version}"
    return {
        "Homepage": f"{files}/README.md",
        "Source": repository,
        "Documentation": f"{files}/docs/index.md",
        "Changelog": f"{files}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
        "Security": f"{files}/SECURITY.md",
    }


class Description(MetadataHookInterface):
    """Gives the description and the project URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set `readme` and `urls`."""
        repository = os.environ.get("PROJECT_URL", "").rstrip("/")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        text = description(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = project_urls(repository, metadata["version"])


def component(name: str, **more: object) -> dict[str, Any]:
    """A distribution in the form of CycloneDX."""
    return {
        "type": "library",
        "bom-ref": f"pkg:pypi/{name}",
        "name": name,
        "purl": f"pkg:pypi/{name}",
        **more,
    }


def bill_of_materials(
    name: str, version: str, license_: str, dependencies: list[str], extras: dict[str, list[str]]
) -> dict[str, object]:
    """The bill of materials of a wheel that bundles nothing: what it is, and what it asks for."""
    found: dict[str, dict[str, Any]] = {}
    for extra, texts in {"": dependencies, **extras}.items():
        for requirement in map(Requirement, texts):
            if requirement.name == name:
                continue
            version_range = {"name": "requirement", "value": str(requirement.specifier)}
            each = component(
                requirement.name, scope="optional" if extra else "required", properties=[version_range]
            )
            known = found.setdefault(requirement.name, each)
            if known["scope"] == "optional":
                known["properties"].append({"name": "extra", "value": extra})
    itself = component(name, version=version, licenses=[{"license": {"id": license_}}])
    itself["purl"] = itself["bom-ref"] = f"pkg:pypi/{name}@{version}"
    references = sorted(str(each["bom-ref"]) for each in found.values())
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"lifecycles": [{"phase": "build"}], "component": itself},
        "components": [found[name] for name in sorted(found)],
        "dependencies": [{"ref": itself["bom-ref"], "dependsOn": references}],
        "compositions": [  # nothing is bundled; what the dependencies need in turn is not known here
            {"aggregate": "complete", "assemblies": [itself["bom-ref"]]},
            {"aggregate": "incomplete", "dependencies": references},
        ],
    }


class BillOfMaterials(BuildHookInterface[Any]):
    """Puts the bill of materials into the wheel (PEP 770)."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the bill, and name it to the builder."""
        core = self.metadata.core
        bill = bill_of_materials(
            core.name,
            self.metadata.version,
            core.license_expression,
            core.dependencies,
            core.optional_dependencies,
        )
        path = Path(tempfile.mkdtemp(prefix="sbom-"), BILL)
        path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
        build_data["sbom_files"].append(str(path))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written."""
        for path in map(Path, build_data["sbom_files"]):
            path.unlink()
            path.parent.rmdir()
