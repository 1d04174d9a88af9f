"""docs/errors.json and the table of docs/errors.md say what the error classes say."""

from __future__ import annotations

import json
import re

import pytest

from payments_async import errors
from payments_async.errors import PaymentsError
from tests.docs.pages import page, rows
from tests.test_errors import EXAMPLES
from tools import errors as tool

TABLE = {row[0].strip("`"): row for row in rows(page("docs/errors.md")) if len(row) == 4}
PUBLIC = sorted(set(EXAMPLES) - {"PaymentsError"})


def test_the_page_has_a_row_for_every_error_and_no_other() -> None:
    assert TABLE.keys() - {"Error", "---"} == {*PUBLIC}


@pytest.mark.parametrize("name", PUBLIC)
def test_the_page_says_what_the_class_says(name: str) -> None:
    cls: type[PaymentsError] = getattr(errors, name)
    assert {"effects", "remedy"} <= vars(cls).keys(), "its own, and no parent's"
    _, _, effects, remedy = TABLE[name]
    assert (set(re.findall(r"none|happened|unknown", effects)), remedy) == ({*cls.effects}, cls.remedy)


@pytest.mark.parametrize("error", EXAMPLES.values(), ids=EXAMPLES)
def test_an_error_has_an_effect_that_its_class_allows(error: PaymentsError) -> None:
    assert error.effect in type(error).effects


def test_the_file_in_the_tree_is_fresh() -> None:
    assert page("docs/errors.json") == tool.text(), "run: python -m tools.errors"


def test_each_error_has_a_code_of_its_own_a_remedy_and_effects() -> None:
    listed = json.loads(page("docs/errors.json"))["errors"]
    found = {each["code"]: each for each in listed}
    assert len(found) == len(listed)
    assert {each["class"].rpartition(".")[2] for each in listed} >= {*PUBLIC, "BulkError", "LedgerMissing"}
    assert found["duplicate_reference"]["status"] == 409
    assert found["api_connection_error"]["class"] == "payments_async.errors.APIConnectionError"
    for each in listed:
        assert each["remedy"]
        assert each["effects"]
        assert not [private for private in each["class"].split(".") if private.startswith("_")]
