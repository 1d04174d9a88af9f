"""Every text of the payer's pages is in every catalogue, with the same values, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import pytest
from jinja2 import Environment, nodes

import payments_async.sandbox._checkout as checkout
from payments_async.sandbox._checkout.language import LANGUAGES

FOLDER = Path(checkout.__file__).parent
CAPITAL = re.compile("[A-Z][a-z]")
TRANSLATED = [code for code in LANGUAGES if code != "en"]


def texts_of_code(source: str) -> Iterator[str]:
    """The literals of `Text(...)`; anything else in it could not be found."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Text":
            (argument,) = node.args
            assert isinstance(argument, ast.Constant), ast.unparse(node)
            yield argument.value


def texts_of_template(source: str) -> Iterator[str]:
    """The literals of `_(...)`."""
    for call in Environment(autoescape=True).parse(source).find_all(nodes.Call):
        if isinstance(call.node, nodes.Name) and call.node.name == "_":
            text = call.args[0]
            assert isinstance(text, nodes.Const), f"line {call.lineno}: a literal text, please"
            yield text.value


def texts() -> set[str]:
    """Every text of the pages."""
    code = [text for path in FOLDER.glob("*.py") for text in texts_of_code(path.read_text("utf-8"))]
    templates = (FOLDER / "templates").glob("*.html")
    return {*code, *(text for path in templates for text in texts_of_template(path.read_text("utf-8")))}


def names(text: str) -> set[str]:
    """The values that a text has places for."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


def test_the_texts_are_found() -> None:
    assert {"Payment complete", "Continue to the bank", "Card", "You paid {amount} to {brand}."} <= texts()
    with pytest.raises(AssertionError):
        list(texts_of_code("Text(name)"))
    with pytest.raises(AssertionError):
        list(texts_of_template("{{ _(name) }}"))


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_catalogue_has_every_text_and_no_other(code: str) -> None:
    known = set(LANGUAGES[code].texts)
    assert (texts() - known, known - texts()) == (set(), set()), "(missing, unused)"


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_translation_has_the_values_of_its_text(code: str) -> None:
    catalogue = LANGUAGES[code].texts
    assert {text: said for text, said in catalogue.items() if names(text) != names(said)} == {}


@pytest.mark.parametrize("code", TRANSLATED)
def test_a_translation_is_typographically_sound(code: str) -> None:
    said = "".join(LANGUAGES[code].texts.values())
    assert not re.search(r"'|\"|  |\.\.\.|^ | $", said)
    if code == "fr":  # no line begins with such a sign
        assert not re.search(r"[^\u202f\u00a0][?!;:»]|«[^\u00a0]", said)
    if code == "ar":
        assert not re.search(r"[,;?]", said)


def words_of_its_own(source: str) -> list[str]:
    """What a template says without `_`: in its text, in attributes that are heard, in its literals."""
    tree = Environment(autoescape=True).parse(source)
    parts = [part for output in tree.find_all(nodes.Output) for part in output.nodes]
    plain = "".join(part.data for part in parts if isinstance(part, nodes.TemplateData))
    heard = re.findall(r' (?:alt|title|label|placeholder|aria-label)="[^"]*[A-Za-z]{2}[^"]*"', plain)
    shown = re.findall(r">[^<>]*[A-Za-z]{2}[^<>]*<", re.sub(r' [a-z-]+="[^"]*"', "", plain))
    literals = {const.value for const in tree.find_all(nodes.Const) if isinstance(const.value, str)}
    return [
        *heard,
        *shown,
        *(text for text in literals - set(texts_of_template(source)) if CAPITAL.search(text)),
    ]


@pytest.mark.parametrize("path", sorted((FOLDER / "templates").glob("*.html")), ids=lambda path: path.name)
def test_no_template_has_words_of_its_own(path: Path) -> None:
    assert words_of_its_own(path.read_text("utf-8")) == []


def test_words_of_a_template_are_found() -> None:
    for source in ("<p>Pay {{ x }}</p>", '<p title="Pay"></p>', '{{ "Paid" if x }}', "<a>{{ x }} of</a>"):
        assert words_of_its_own(source)
    assert words_of_its_own('<p class="a b" data-x="{{ x }}">{{ _("Pay") }}: 5</p>') == []
