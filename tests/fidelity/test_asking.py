"""The sandbox over loopback, asked by schemathesis what docs/openapi.json allows and what it does not."""

from __future__ import annotations

import re

import pytest

from tests.fidelity.asking import WAIVED, ask

# many times as slow when it is traced; others cover the same
pytestmark = pytest.mark.no_cover  # heavy under a tracer; what it runs is covered without it

EXAMPLES = 4
"""For each operation and phase."""


@pytest.mark.slow
def test_the_sandbox_answers_every_request_as_the_document_says() -> None:
    ended = ask(EXAMPLES, 0)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    phases = re.findall(r"✅ (\w+)", ended.stdout)
    assert phases[-3:] == ["Coverage", "Fuzzing", "Stateful"], "none of them was skipped"
    asked = re.search(r"(\d+) generated, (\d+) passed", ended.stdout)
    assert asked is not None
    assert int(asked[1]) == int(asked[2]) > 1000
    assert all(reason.endswith(".") for reason in WAIVED.values())
