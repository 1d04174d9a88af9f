"""Row keys and references that only look alike: one name for one row, and none that pays it twice."""

from __future__ import annotations

from unicodedata import is_normalized

import pytest

from payments_async.bulk._rows_in import Naming
from payments_async.bulk.sources import IterableSource, Row
from tests.support.batches import item

COMPOSED = {
    "1": "xmbmerxtuh4xrrjngb65demuearali4x2ty7h3nibsayli4m724q",
    "emp-0001": "me5ghcpvjqyjn7wfzpyk3de7eqvhz2nxkqqojdbls4ejypj5ngaa",
    "EMP 7/a~b": "y5i63t4tlku3zxvrbuntlgxy6ppyx6iksoknt3lsfxroe7jwgeea",
    "José": "x4zz3o5rjltcmxg4nshslzkdz7lnhxkb4b2zj545ref5cwvvucxq",
    "N°42": "fdytkzvt7y4yyb5czcdjt4hx326kwo44y2eqebneeaqns5n5biwq",
    "Łódź-é": "r2taiqwxvfh3pinesgm4fvpiohkgif3jv2uhnqmodnikr5y3pwma",
    "社員-一": "wfiynl4oqlmaldtzzrbekz47e6dubgialiiykpwol2pgchorcd7q",
    "직원": "q3mwe3mc46dlusjxn3asznxkcwyxatfua7dmgih7g23u7wapbsya",
    "😀": "fxbww75upw5q4by3irk6xcdufxlfnaz3m6cads456wickqt7myyq",
    "x" * 191: "4syo2kp3nlfdacpx4paarnytnmi5v5rc47f2466mk6674fepjrva",
}
"""References of the live batch `june`, made by the release before keys were composed."""


async def row_of(key: str) -> Row:
    """A row with this key, as a source gives it."""
    (row,) = [each async for each in IterableSource([(key, item(1)[1])]).rows()]
    assert isinstance(row, Row)
    return row


@pytest.mark.parametrize("key", COMPOSED)
async def test_a_composed_key_keeps_the_reference_that_it_always_had(key: str) -> None:
    assert is_normalized("NFC", key)
    assert Naming("live", "june").new_row(await row_of(key)).reference == COMPOSED[key]
