"""What a regular expression costs, in steps of a backtracking matcher instead of seconds.

`Matcher` reads an expression with the standard library's own parser and matches it as `re` does, one step at
a time: a machine that is busy changes nothing. `re` skips some of them, so the count is an upper bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from re import _constants as code  # type: ignore[attr-defined] # the parser's own names; no public ones exist
from re import _parser as parser  # type: ignore[attr-defined] # likewise
from typing import Any

import attrs

Test = Callable[[str, int], bool]
"""Whether a text goes on as wanted at a position."""
MOST_STEPS = 2_000_000


class TooManySteps(Exception):
    """Far more steps than a linear expression takes."""


@attrs.frozen
class Step:
    """One instruction: `one` character, a `test` that takes none, a `fork`, a `jump`, or the `end`."""

    kind: str
    test: Test | None = None
    to: int = 0
    other: int = 0


@attrs.define(eq=False)
class Matcher:
    """An expression, matched by counting."""

    pattern: re.Pattern[str]
    steps: int = 0

    @cached_property
    def tree(self) -> Any:
        """What the parser makes of the expression."""
        return parser.parse(self.pattern.pattern, self.pattern.flags)

    @cached_property
    def program(self) -> list[Step]:
        """The expression's instructions."""
        return self._program(self.tree)

    def count(self, text: str, how: str) -> int:
        """Steps that `how` (`search`, `match`, `fullmatch`, or one that finds all) takes on a text."""
        self.steps = 0
        if how in ("match", "fullmatch"):
            self.end(text, 0, whole=how == "fullmatch")
            return self.steps
        start = 0
        while start <= len(text):
            end = self.end(text, start)
            if end is not None and how == "search":
                break
            start = start + 1 if end is None else max(end, start + 1)
        return self.steps

    def end(self, text: str, start: int, *, whole: bool = False) -> int | None:
        """Where a match that begins at `start` ends; None when there is none."""
        return self._run(self.program, text, start, whole=whole)

    def _run(self, program: list[Step], text: str, start: int, *, whole: bool = False) -> int | None:
        left, steps = [(0, start)], 0
        try:
            while left:
                at, place = left.pop()
                while True:
                    steps += 1
                    if steps > MOST_STEPS:
                        raise TooManySteps
                    step = program[at]
                    kind = step.kind
                    if kind == "end":
                        if not whole or place == len(text):
                            return place
                        break
                    if kind == "fork":
                        left.append((step.other, place))
                        at = step.to
                    elif kind == "jump":
                        at = step.to
                    elif step.test is not None and step.test(text, place):
                        at, place = at + 1, place + (kind == "one")
                    else:
                        break
            return None
        finally:
            self.steps += steps

    def _program(self, tree: Any) -> list[Step]:
        program: list[Step] = []
        self._add(program, tree)
        program.append(Step("end"))
        return program

    def _add(self, program: list[Step], tree: Any) -> None:
        for kind, value in tree:
            if kind in (code.LITERAL, code.NOT_LITERAL, code.ANY, code.IN):
                program.append(Step("one", self._one(kind, value)))
            elif kind is code.SUBPATTERN:
                self._add(program, value[3])
            elif kind is code.BRANCH:
                self._branch(program, value[1])
            elif kind in (code.MAX_REPEAT, code.MIN_REPEAT):
                self._repeat(program, *value, greedy=kind is code.MAX_REPEAT)
            elif kind in (code.ASSERT, code.ASSERT_NOT):
                program.append(Step("test", self._around(*value, wanted=kind is code.ASSERT)))
            elif kind is code.AT:
                program.append(Step("test", _at(value)))
            else:
                raise NotImplementedError(f"{self.pattern.pattern}: {kind}")

    def _branch(self, program: list[Step], branches: list[Any]) -> None:
        ends = []
        for branch in branches[:-1]:
            fork = len(program)
            program.append(Step("fork"))
            self._add(program, branch)
            ends.append(len(program))
            program.append(Step("jump"))
            program[fork] = Step("fork", to=fork + 1, other=len(program))
        self._add(program, branches[-1])
        for end in ends:
            program[end] = Step("jump", to=len(program))

    def _repeat(self, program: list[Step], least: int, most: Any, tree: Any, *, greedy: bool) -> None:
        for _ in range(least):
            self._add(program, tree)
        endless = most is code.MAXREPEAT
        forks = []
        for _ in range(1 if endless else most - least):
            forks.append(len(program))
            program.append(Step("fork"))
            self._add(program, tree)
            if endless:
                program.append(Step("jump", to=forks[0]))
        for fork in forks:
            inside, after = (fork + 1, len(program)) if greedy else (len(program), fork + 1)
            program[fork] = Step("fork", to=inside, other=after)

    def _around(self, direction: int, tree: Any, *, wanted: bool) -> Test:
        program, width = self._program(tree), tree.getwidth()[0]

        def test(text: str, place: int) -> bool:
            start = place - width if direction < 0 else place
            return (start >= 0 and self._run(program, text, start) is not None) is wanted

        return test

    def _one(self, kind: Any, value: Any) -> Test:
        fits = cache(self.fits(kind, value))
        return lambda text, place: place < len(text) and fits(text[place])

    def fits(self, kind: Any, value: Any) -> Callable[[str], bool]:
        """What tells whether one character is of this part of the expression."""
        folds = bool(self.pattern.flags & re.IGNORECASE)
        if kind is code.ANY:
            return lambda sign: bool(self.pattern.flags & re.DOTALL) or sign != "\n"
        if kind is code.NOT_LITERAL:
            return lambda sign: ord(sign) != value
        if kind is code.LITERAL:
            return lambda sign: ord(sign) == value or (folds and sign.lower() == chr(value).lower())
        negated = value[0][0] is code.NEGATE
        parts = [self._part(*part) for part in value if part[0] is not code.NEGATE]
        return lambda sign: any(part(sign) for part in parts) is not negated

    def _part(self, kind: Any, value: Any) -> Callable[[str], bool]:
        if kind is code.RANGE:
            return lambda sign: value[0] <= ord(sign) <= value[1]
        if kind is code.CATEGORY:
            known = re.compile(_CATEGORIES[str(value)], self.pattern.flags & re.ASCII)
            return lambda sign: known.match(sign) is not None
        return self.fits(kind, value)


_CATEGORIES = {
    "CATEGORY_DIGIT": r"\d",
    "CATEGORY_NOT_DIGIT": r"\D",
    "CATEGORY_SPACE": r"\s",
    "CATEGORY_NOT_SPACE": r"\S",
    "CATEGORY_WORD": r"\w",
    "CATEGORY_NOT_WORD": r"\W",
}


def _at(where: Any) -> Test:
    if where in (code.AT_BEGINNING, code.AT_BEGINNING_STRING):
        return lambda text, place: place == 0
    if where in (code.AT_END, code.AT_END_STRING):
        return lambda text, place: place == len(text)
    raise NotImplementedError(str(where))


SIGNS = '0a.Z -_@:+\\"(/~é\x00\n' + "".join(map(chr, range(33, 127)))
"""Characters to make texts of, besides those that an expression names; the most telling ones first."""


def hostile(matcher: Matcher, length: int) -> Iterator[str]:
    """Texts of about a length that repeat what the expression takes, and then disappoint it."""
    texts = dict.fromkeys("".join(_samples(matcher, matcher.tree, branch)) for branch in range(3))
    parts = {
        (text[start : start + size], text[:start])
        for text in texts
        for start in range(0, len(text), 1 + len(text) // _MOST_STARTS)
        for size in _SIZES
    }
    for part, before in sorted({*parts, *((sign, "") for sign in "a1 .@")}):
        body = before + part * (length // len(part))
        yield from (body, body + "\x00", body + "@")


_SIZES = (1, 2, 3, 7, 8)
_MOST_STARTS = 60
"""Places of a long text from which parts are taken: most of its characters stand for their neighbours."""


def _samples(matcher: Matcher, tree: Any, branch: int) -> Iterator[str]:
    """For each character that the expression takes, in their order, one that fits."""
    for kind, value in tree:
        if kind is code.LITERAL:
            yield chr(value)
        elif kind in (code.NOT_LITERAL, code.ANY, code.IN):
            fits = matcher.fits(kind, value)
            yield next((sign for sign in SIGNS if fits(sign)), "\U0001f1e6")
        elif kind is code.SUBPATTERN:
            yield from _samples(matcher, value[3], branch)
        elif kind is code.BRANCH:
            yield from _samples(matcher, value[1][branch % len(value[1])], branch)
        elif kind in (code.MAX_REPEAT, code.MIN_REPEAT):
            yield from _samples(matcher, value[2], branch)
