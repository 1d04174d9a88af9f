"""The sandbox over loopback, asked by schemathesis what docs/openapi.json allows and what it does not."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from payments_async.sandbox import OBSERVED, Sandbox, SandboxLimits
from tests.fidelity.served import served

pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

EXAMPLES = 4
"""For each operation and phase."""
WAIVED = "unsupported_method"
"""It wants a 405 for a method that an address does not have. The interface's errors know 404 for what is not
there, and no 405: an operation is a method with a path."""


@pytest.mark.slow
def test_the_sandbox_answers_every_request_as_the_document_says(tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    document.write_text(json.dumps(served()), encoding="utf-8")
    profile = attrs.evolve(OBSERVED, magic=False)
    with Sandbox(profile=profile, limits=SandboxLimits.off()) as sandbox:
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", sandbox.base_url),
            *("--header", f"Authorization: Bearer {sandbox.api_key}", "--seed", "0"),
            *("--max-examples", str(EXAMPLES), "--exclude-checks", WAIVED, "--no-color"),
            *("--generation-database", "none", "--continue-on-failure", "--request-timeout", "20"),
        ]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    phases = re.findall(r"✅ (\w+)", ended.stdout)
    assert phases[-3:] == ["Coverage", "Fuzzing", "Stateful"], "none of them was skipped"
    asked = re.search(r"(\d+) generated, (\d+) passed", ended.stdout)
    assert asked is not None
    assert int(asked[1]) == int(asked[2]) > 1000
