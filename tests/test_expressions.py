"""Every regular expression of the package takes a time that grows as its text does, not faster.

On a long text a quadratic expression takes seconds and a linear one milliseconds. This thread's own count:
a machine that is busy changes nothing.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined] # no public name exists
from re import _constants as code  # type: ignore[attr-defined] # likewise
from re import _parser as parser  # type: ignore[attr-defined] # likewise
from typing import Any

import attrs
import pytest

import payments_async
from tests.support.canary import CANARY_KEY

ROOT = Path(payments_async.__file__).parent
LENGTH = 20_000
MOST = 0.05
"""Seconds of this thread."""
SIGNS = '0a.Z -_@:+\\"(/~é\x00\n' + "".join(map(chr, range(33, 127)))
"""Characters to make texts of, besides those that an expression names; the most telling ones first."""
SIZES = (1, 2, 3, 7, 8)
MOST_STARTS = 60
"""Places of a sample from which parts are taken: most of its characters stand for their neighbours."""
USES = frozenset({"search", "match", "fullmatch", "sub", "split", "findall", "finditer"})


@attrs.frozen
class Use:
    """An expression, and how it is put to a text."""

    place: str
    pattern: str
    flags: int
    how: str

    def is_linear(self) -> bool:
        """Whether no hostile text takes long."""
        expression = re.compile(self.pattern, self.flags)
        use, more = getattr(expression, self.how), ("",) if self.how == "sub" else ()
        return all(_seconds(use, *more, text) < MOST for text in hostile(expression))


def _seconds(use: Callable[..., Any], *given: str) -> float:
    began = time.thread_time()
    found = use(*given)
    for _ in found if isinstance(found, Iterator) else ():
        pass
    return time.thread_time() - began


def hostile(expression: re.Pattern[str]) -> Iterator[str]:
    """Long texts that repeat what the expression takes, and then disappoint it."""
    tree = parser.parse(expression.pattern, expression.flags)
    samples = dict.fromkeys("".join(_sample(tree, branch)) for branch in range(3))
    parts = {
        (text[start : start + size], text[:start])
        for text in samples
        for start in range(0, len(text), 1 + len(text) // MOST_STARTS)
        for size in SIZES
    }
    for part, before in sorted({*parts, *((sign, "") for sign in "a1 .@")}):
        body = before + part * (LENGTH // len(part))
        yield from (body, body + "\x00", body + "@")


def _sample(tree: Any, branch: int) -> Iterator[str]:
    """For each character that the expression takes, in their order, one that fits."""
    for kind, value in tree:
        if kind is code.LITERAL:
            yield chr(value)
        elif kind in (code.NOT_LITERAL, code.ANY, code.IN):
            one = compiler.compile(parser.SubPattern(tree.state, [(kind, value)]))
            yield next(filter(one.fullmatch, SIGNS), "\U0001f1e6")
        elif kind is code.SUBPATTERN:
            yield from _sample(value[3], branch)
        elif kind is code.BRANCH:
            yield from _sample(value[1][branch % len(value[1])], branch)
        elif kind in (code.MAX_REPEAT, code.MIN_REPEAT):
            yield from _sample(value[2], branch)


def _schema_patterns() -> Iterator[str]:
    for call in ast.walk(ast.parse((ROOT / "sandbox/_api/request_schemas.py").read_text())):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "pattern":
                yield ast.literal_eval(keyword.value)


def _forms() -> Any:
    rules = "(rule for table in RULES.values() for rule in table.values())"
    return _value("_validation/tables.py", f"[rule.form for rule in {rules} if isinstance(rule, Letters)]")


MADE: dict[tuple[str, str], str | Callable[[], Iterable[str]]] = {
    ("params/operations.py", "re.sub(_PLACEHOLDER, '(?P<\\\\1>[^/]+)', self.path)"): (
        r"[re.sub(_PLACEHOLDER, r'(?P<\1>[^/]+)', each.path) for each in OPERATIONS.values()]"
    ),
    ("params/operations.py", "form"): "[_ID, _COUNTRY]",
    ("_validation/rules.py", "self.form"): _forms,
    ("_validation/amount_guesses.py", "form"): "[form for form, _ in _FORMS]",
    ("_validation/receivers.py", "form"): "[form for form, _ in _SPREADSHEET]",
    ("models/_masking.py", "_forms(secret)"): f"[_forms({CANARY_KEY!r})]",
    ("_request/error_responses.py", "'|'.join(parts)"): (
        "[_own_pattern(['Ada', '+22990112233', 'a' * 40]).pattern]"
    ),
    ("sandbox/_api/field_checks.py", "pattern"): _schema_patterns,
    ("sandbox/_common/operations.py", "re.sub('\\\\{(\\\\w+)\\\\}', '(?P<\\\\1>[^/]+)', path)"): (
        "[each.pattern for _, each in _WITH_PARAMETERS]"
    ),
    ("sandbox/_control_api/routes.py", "re.sub('\\\\{(\\\\w+)\\\\}', _ID, self.path)"): (
        "[route.pattern.pattern for route in ROUTES]"
    ),
    ("sandbox/_inspector/site.py", "pattern or re.escape(name)"): "[page.pattern.pattern for page in PAGES]",
}
"""Expressions made as the program runs: {(file, how its line says it): what gives them, in its module}."""


def _uses() -> Iterator[Use]:
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if not re.search(r"\bimport re\b", text):
            continue  # no other line brings the name `re`
        tree = ast.parse(text)
        names = {
            id(part): name
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            for name in [ast.unparse(target)]
            for part in ast.walk(node.value)
        }
        for call in ast.walk(tree):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=how)) if how != "escape":
                    place = path.relative_to(ROOT).as_posix()
                    yield from _uses_in(place, call, text, names.get(id(call), ""))


def _uses_in(place: str, call: Any, text: str, name: str) -> Iterator[Use]:
    how = call.func.attr
    if how == "compile":
        found = set(re.findall(rf"\b{name}\.(\w+)\(", text)) & USES if name else set()
        hows = sorted(found) or ["search"]  # which is the dearest
    else:
        hows = [how]
    flags = next((_value(place, each) for each in call.args if ast.unparse(each).startswith("re.A")), 0)
    for pattern in _patterns(place, call.args[0]):
        yield from (Use(place, pattern, int(flags), each) for each in hows)


def _patterns(place: str, said: ast.expr) -> Iterable[str]:
    try:
        return [_value(place, said)]
    except (NameError, AttributeError):
        known = MADE.get((place, ast.unparse(said)))
        assert known, f"{place} makes an expression that this test does not know: {ast.unparse(said)}"
        return known() if callable(known) else _value(place, known)


def _value(place: str, said: ast.expr | str) -> Any:
    module = importlib.import_module("payments_async." + place.removesuffix(".py").replace("/", "."))
    whole = said if isinstance(said, str) else ast.Expression(said)
    found = eval(compile(whole, place, "eval"), dict(vars(module)))
    return found.decode() if isinstance(found, bytes) else found


ALL = list(dict.fromkeys(_uses()))


@pytest.mark.slow
@pytest.mark.parametrize("use", ALL, ids=lambda use: f"{use.place}-{use.how}")
def test_an_expression_is_linear(use: Use) -> None:
    assert use.is_linear(), use


@pytest.mark.parametrize(
    ("pattern", "how"),
    [
        (r"[^\s@]+@[^\s@]+\.[^\s@]+", "sub"),
        (r"\d+\.?\Z", "search"),
        (r"\(near: ([^)]*)\)", "search"),
        (r"\s*(\S*)\s*,", "match"),
        (r"(?:a|b)*(?:b|c)*d", "fullmatch"),
    ],
)
def test_what_is_not_linear_is_found(pattern: str, how: str) -> None:
    assert not Use("", pattern, 0, how).is_linear()
