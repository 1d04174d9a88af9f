"""Plugins that every test run uses."""

from __future__ import annotations

pytest_plugins = ["pytester", "tests.facts_plugin"]
