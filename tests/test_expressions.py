"""Every regular expression of the package takes a number of steps that grows as its text does, not faster."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import payments_async
from payments_async._request import error_responses
from payments_async._validation import amounts, tables, texts
from payments_async._validation.rules import Letters
from payments_async.models import _masking
from payments_async.params import operations
from payments_async.sandbox._api import request_schemas
from payments_async.sandbox._common import operations as sandbox_operations
from payments_async.sandbox._control_api.routes import ROUTES
from payments_async.sandbox._inspector import site
from tests.support.canary import CANARY_KEY
from tests.support.expressions import Matcher, hostile

ROOT = Path(payments_async.__file__).parent
LENGTH = 250
"""Of the shorter texts: more than the bound of any repetition that a search begins with."""
MOST = 3.0
"""Times the steps for a text of twice the length: linear is twice, quadratic four times."""
USES = frozenset({"search", "match", "fullmatch", "sub", "split", "findall", "finditer"})


@attrs.frozen
class Use:
    """An expression, and how it is put to a text."""

    place: str
    pattern: str
    flags: int
    how: str

    def matcher(self) -> Matcher:
        """What counts its steps."""
        return Matcher(re.compile(self.pattern, self.flags))


def _schema_patterns() -> Iterator[str]:
    for call in ast.walk(ast.parse(Path(request_schemas.__file__).read_text())):
        for keyword in call.keywords if isinstance(call, ast.Call) else ():
            if keyword.arg == "pattern":
                yield ast.literal_eval(keyword.value)


def _forms() -> Iterator[str]:
    rules = {rule for table in tables.RULES.values() for rule in table.values()}
    return (rule.form for rule in rules if isinstance(rule, Letters))


def _own_texts() -> str:
    pattern = error_responses._own_pattern(["Ada", "+22990112233", "a" * 40])
    assert pattern is not None
    return pattern.pattern


MADE: dict[tuple[str, str], Callable[[], Iterable[str]]] = {
    ("params/operations.py", "pattern"): lambda: [
        re.sub(operations._PLACEHOLDER, r"(?P<\1>[^/]+)", each.path)
        for each in operations.OPERATIONS.values()
    ],
    ("params/operations.py", "form"): lambda: [operations._ID, operations._COUNTRY],
    ("_validation/rules.py", "self.form"): _forms,
    ("_validation/amounts.py", "form"): lambda: [form for form, _ in amounts._FORMS],
    ("_validation/texts.py", "form"): lambda: [form for form, _ in texts._SPREADSHEET],
    ("models/_masking.py", "_forms(secret)"): lambda: [_masking._forms(CANARY_KEY)],
    ("_request/error_responses.py", "'|'.join(parts)"): lambda: [_own_texts()],
    ("sandbox/_api/field_checks.py", "pattern"): _schema_patterns,
    ("sandbox/_common/operations.py", "re.sub('\\\\{(\\\\w+)\\\\}', '(?P<\\\\1>[^/]+)', path)"): lambda: [
        each.pattern for _, each in sandbox_operations._WITH_PARAMETERS
    ],
    ("sandbox/_control_api/routes.py", "re.sub('\\\\{(\\\\w+)\\\\}', _ID, self.path)"): lambda: [
        route.pattern.pattern for route in ROUTES
    ],
    ("sandbox/_inspector/site.py", "pattern or re.escape(name)"): lambda: [
        page.pattern.pattern for page in site.PAGES
    ],
}
"""Expressions that are made while the program runs: {(file, how its line says it): what gives them}."""


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
        return known()


def _value(place: str, said: ast.expr) -> Any:
    module = importlib.import_module("payments_async." + place.removesuffix(".py").replace("/", "."))
    found = eval(compile(ast.Expression(said), place, "eval"), dict(vars(module)))
    return found.decode() if isinstance(found, bytes) else found


ALL = list(dict.fromkeys(_uses()))


def is_linear(matcher: Matcher, how: str) -> bool:
    """Whether the steps for no hostile text grow much faster than the text."""
    return all(
        (steps := matcher.count(after, how)) < MOST * LENGTH or steps < MOST * matcher.count(before, how)
        for before, after in zip(hostile(matcher, LENGTH), hostile(matcher, 2 * LENGTH), strict=True)
    )


@pytest.mark.slow
@pytest.mark.parametrize("use", ALL, ids=lambda use: f"{use.place}-{use.how}")
def test_an_expression_is_linear(use: Use) -> None:
    assert is_linear(use.matcher(), use.how), use


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
    assert not is_linear(Matcher(re.compile(pattern)), how)


@given(st.data())
def test_the_counted_matches_are_those_of_the_library(data: st.DataObject) -> None:
    use = data.draw(st.sampled_from(ALL))
    matcher = use.matcher()
    texts = list(hostile(matcher, 20))
    text = data.draw(st.one_of(st.sampled_from(texts), st.text("".join(set("".join(texts))), max_size=12)))
    for start in range(len(text) + 1):
        found = matcher.pattern.match(text[start:])
        if not re.search(r"\(\?<|\\[ABZb]|\^", use.pattern):  # these see what stands before or after
            assert matcher.end(text, start) == (found.end() + start if found else None)
    assert (matcher.end(text, 0, whole=True) is None) is (matcher.pattern.fullmatch(text) is None)
