"""The whole document, and where it is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .answers import describe
from .operations import OPERATIONS
from .records import RECORDS
from .requests import REQUESTS

PLACE = Path(__file__).parents[3] / "docs" / "openapi.json"

_ABOUT = """\
The contract of docs/interface.md as an OpenAPI document. `x-gap` marks what that page does not show and this
project assumes, by the letter of its last section; `x-limit` names the class of rate limit."""

_LIMITS = {
    "writes": {"per_key": 60_000},
    "reads": {"per_key": 10_000},
    "diagnostics": {"per_key": 6_000, "per_record": 12},
}
"""Requests a minute."""


def document() -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    paths: dict[str, Any] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method] = describe(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Payment collection and payout service", "version": "1.0.0", "description": _ABOUT},
        "servers": [
            {
                "url": "{base_url}",
                "variables": {
                    "base_url": {
                        "default": "http://127.0.0.1:7788/v1",
                        "description": "Ends in the version prefix; the default is the sandbox.",
                    }
                },
            }
        ],
        "security": [{"secretKey": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "secretKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A secret key: `sk_live_` or `sk_sandbox_` chooses the environment.",
                }
            },
            "schemas": {**RECORDS, **REQUESTS},
        },
        "x-limits": _LIMITS,
    }


def text() -> str:
    """The document as it is kept."""
    return json.dumps(document(), indent=1, ensure_ascii=False) + "\n"
