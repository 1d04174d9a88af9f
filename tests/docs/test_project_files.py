"""The files around the code fit it: the workflow, the pre-commit hooks, CONTRIBUTING.md."""

from __future__ import annotations

import ast
import os
import re
import tomllib
from importlib.metadata import files
from typing import Any

import pytest
import yaml

from tests.docs.pages import PROSE, ROOT, page

WORKFLOW = ".github/workflows/tests.yml"
RELEASE = ".github/workflows/release.yml"
NIGHTLY = ".github/workflows/nightly.yml"
WEEKLY = ".github/workflows/weekly.yml"
BUILDER = ".github/build-requirements.txt"


def loaded(name: str) -> Any:
    return yaml.safe_load(page(name))


def test_the_workflow_runs_what_ci_runs_on_pushes_and_pull_requests() -> None:
    workflow = loaded(WORKFLOW)
    assert set(workflow[True]) == {"push", "pull_request"}, "YAML 1.1 reads `on` as true"
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    assert [step["run"] for step in steps if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_ci_runs_the_tests_on_each_supported_python() -> None:
    project = tomllib.loads(page("pyproject.toml"))["project"]
    supported = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    (named,) = re.findall(r"nox .*tests_on --pythons (.*)", page(".ci/run"))
    assert named.split() == supported
    (job,) = loaded(WORKFLOW)["jobs"].values()
    (pythons,) = (step["with"]["python-version"] for step in job["steps"] if "python" in step.get("uses", ""))
    assert sorted(pythons.split()) == supported


@pytest.mark.parametrize("name", [WORKFLOW, NIGHTLY, WEEKLY])
def test_the_workflows_may_only_read(name: str) -> None:
    assert loaded(name)["permissions"] == {"contents": "read"}


def test_each_session_runs_in_a_workflow_and_the_night_s_are_those_of_everything() -> None:
    matrix = {name: scheduled(name) for name in (NIGHTLY, WEEKLY)}
    assert matrix[NIGHTLY] == constant("NIGHT")
    called = re.findall(r"nox (?:-s|.*--session) ([a-z_ ]+?)(?: -|;|$)", page(".ci/run"), re.MULTILINE)
    change = {*constant("CHANGE"), *" ".join(called).split(), *re.findall(r"nox -s (\w+)", page(RELEASE))}
    assert change | {*matrix[NIGHTLY], *matrix[WEEKLY]} == sessions() - {"everything"}


@pytest.mark.parametrize("name", [WORKFLOW, RELEASE, NIGHTLY, WEEKLY])
def test_actions_are_named_by_commit_and_keep_no_credentials(name: str) -> None:
    steps = [step for job in loaded(name)["jobs"].values() for step in job["steps"] if "uses" in step]
    assert not [step["uses"] for step in steps if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])]
    kept = [step for step in steps if "checkout" in step["uses"]]
    assert [step["with"]["persist-credentials"] for step in kept] == [False] * len(kept)


def test_a_release_is_checked_before_it_is_published_and_needs_no_secret() -> None:
    jobs = loaded(RELEASE)["jobs"]
    assert loaded(RELEASE)["permissions"] == {}
    assert "secrets." not in page(RELEASE)
    assert [name for name, job in jobs.items() if "id-token" in job["permissions"]] == ["publish"]
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    assert not [step for step in jobs["publish"]["steps"] if "run" in step], "it runs no code of ours"
    commands = {name: " ".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()}
    assert "git merge-base --is-ancestor HEAD origin/main" in commands["build"]
    assert "nox -s release" in commands["checks"]
    assert "diff -r built dist" in commands["checks"]


def test_what_is_published_is_uploaded_by_a_job_that_installs_by_hash_alone_and_is_documented() -> None:
    jobs = loaded(RELEASE)["jobs"]
    uploads = [
        name for name, job in jobs.items() for step in job["steps"] if "upload" in step.get("uses", "")
    ]
    assert uploads == ["build"]
    commands = " ".join(step.get("run", "") for step in jobs["build"]["steps"])
    assert re.findall(r"pip install (.*?) -r", commands) == [
        "--quiet --require-hashes --no-deps --only-binary :all:"
    ]
    assert "nox" not in commands
    assert "uv run" not in commands
    assert "uv build --no-build-isolation" in commands
    lines = [line for line in page(BUILDER).splitlines() if not line.startswith("#")]
    pinned = [line for line in lines if not line.startswith(" ")]
    assert all(re.fullmatch(r"[a-z-]+==[\d.]+ \\", line) for line in pinned), "no index, and each by version"
    assert all(re.fullmatch(r"    --hash=sha256:[0-9a-f]{64}( \\)?", line) for line in {*lines} - {*pinned})
    project = tomllib.loads(page("pyproject.toml"))
    (builder,) = project["build-system"]["requires"]  # it writes its version into the wheel
    assert builder in project["tool"]["uv"]["constraint-dependencies"]
    assert {line.partition("=")[0] for line in pinned} >= {"uv", "hatchling"}
    assert f"{builder} \\" in pinned
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert len([step for step in steps if "PROJECT_URL" in step.get("env", ())]) == 2
    assert "PROJECT_URL=https://" in page("docs/support.md"), "the address is in the metadata"


def test_the_pythons_that_are_declared_are_tested() -> None:
    classifiers = tomllib.loads(page("pyproject.toml"))["project"]["classifiers"]
    declared = [text.rpartition(" ")[2] for text in classifiers if re.search(r":: 3\.\d+$", text)]
    assert declared == loaded(RELEASE)["jobs"]["tests"]["strategy"]["matrix"]["python"]
    for name in ("docs/install.md", "docs/support.md"):
        assert f"{', '.join(declared[:-1])}" in page(name)
        assert declared[-1] in page(name)


def test_the_wheel_holds_the_two_packages_and_no_tool_of_developers() -> None:
    packages = tomllib.loads(page("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert packages == ["payments_async", "payments_sync"]
    installed = [path for path in files("payments-sdk") or [] if path.suffix == ".py"]
    assert {path.parts[0] for path in installed} <= {*packages}


def sessions() -> set[str]:
    functions = [node for node in ast.parse(page("noxfile.py")).body if isinstance(node, ast.FunctionDef)]
    return {node.name for node in functions if node.decorator_list}


def constant(name: str) -> list[str]:
    (value,) = re.findall(rf"^{name} = (\[.*?\])$", page("noxfile.py"), re.MULTILINE | re.DOTALL)
    return list(ast.literal_eval(value))


def scheduled(name: str) -> list[str]:
    """The sessions that a workflow runs by its clock."""
    (job,) = loaded(name)["jobs"].values()
    assert "schedule" in loaded(name)[True]
    return list(job["strategy"]["matrix"]["session"])


@pytest.mark.parametrize("name", PROSE)
def test_every_session_that_a_page_names_is_one(name: str) -> None:
    assert set(re.findall(r"nox -s (\w+)", page(name))) <= sessions()


def test_the_readme_of_the_tests_names_every_folder_and_support_module() -> None:
    text = page("tests/README.md")
    folders = {path.parent.name for path in (ROOT / "tests").glob("*/*.py")}
    support = {path.name for path in (ROOT / "tests" / "support").glob("*.py")} - {"__init__.py"}
    assert {folder for folder in folders if f"`{folder}/`" not in text} == set()
    assert set(re.findall(r"`(\w+\.py)`", text.split("## Support modules")[1])) == support


def test_every_snapshot_is_that_of_a_test() -> None:
    for file in (ROOT / "tests").rglob("snapshots/*.txt"):
        module = file.parents[1].joinpath(f"{file.stem}.py").read_text(encoding="utf-8")
        for name in re.findall(r"^=== (\w+)", file.read_text(encoding="utf-8"), re.MULTILINE):
            assert f"def {name}(" in module, (file, name)
