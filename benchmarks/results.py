"""What a run reached, kept beside this file: written by a full run, read by everything that tells of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.figures import HEADER, Figure

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results.json"


@dataclass
class Reached:
    """One suite's figures."""

    name: str
    question: str
    figures: list[Figure]
    seconds: float
    """How long it took."""
    load: float
    """The machine's load at its end."""
    machine: dict[str, Any]
    quick: bool = False
    """Fewer rounds and smaller sizes than a full run's."""
    charts: dict[str, str] = field(default_factory=dict)
    """The title of each chart."""
    began: str = ""
    """When the run that this suite was a part of began; "" where it was not kept."""

    def to_dict(self) -> dict[str, Any]:
        """For results.json."""
        return {**vars(self), "figures": [figure.to_dict() for figure in self.figures]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Reached:
        """Back from it."""
        return cls(**{**data, "figures": [Figure.from_dict(each) for each in data["figures"]]})


def read(path: Path = KEPT) -> dict[str, Reached]:
    """The suites that were kept, in their order."""
    if not path.exists():
        return {}
    return {each["name"]: Reached.from_dict(each) for each in json.loads(path.read_text(encoding="utf-8"))}


def write(suites: Sequence[Reached], path: Path = KEPT) -> None:
    """Keep them."""
    text = json.dumps([each.to_dict() for each in suites], indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def judged(suites: Sequence[Reached]) -> str:
    """One table of all that has a target, P1 first."""
    figures = [figure for each in suites for figure in each.figures if figure.met is not None]
    numbered = sorted(figures, key=lambda figure: int((figure.target or "P99")[1:]))
    return "\n".join([HEADER, *(figure.row() for figure in numbered)])
