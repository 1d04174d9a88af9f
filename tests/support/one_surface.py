"""Fixtures of tests that run through the awaited client alone: what they test has no part in the surface."""

from __future__ import annotations

import pytest


@pytest.fixture
def surface() -> str:
    return "async"
