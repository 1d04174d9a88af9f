"""What to say where a library of the sandbox's extra is missing: in its own words, it imports no others."""

from __future__ import annotations

from typing import Final

INSTALL_IT: Final = "install payments-sdk with its extra 'sandbox'"
