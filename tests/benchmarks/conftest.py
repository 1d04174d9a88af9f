"""`benchmarks` is found in the checkout, at the end of the path: what is tested stays what is installed."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
