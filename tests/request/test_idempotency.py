"""Idempotency keys as values: their form, their making, their memory."""

from __future__ import annotations

import copy
import os
import threading
import warnings

import pytest

from payments_async._assumptions import KEY_LIFETIME
from payments_async._request import idempotency
from payments_async._request.idempotency import KeyMaker, UsedKeys, problem
from payments_async._runtime import SYSTEM
from tests.support.jumping import JumpingRuntime


@pytest.mark.parametrize(
    "key", ["12345678", "k" * 128, "a b c d e", "~!@#$%^&*()_+", "x\x20\x20\x20\x20\x20\x20x"]
)
def test_8_to_128_printable_characters_will_do(key: str) -> None:
    assert problem(key) is None


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("1234567", "has 7 characters"),
        ("k" * 129, "has 129 characters"),
        ("", "has 0 characters"),
        (" 1234567", "no space at either end"),
        ("1234567 ", "no space at either end"),
        ("1234567\n", "printable ASCII"),
        ("1234\x7f567", "printable ASCII"),
        ("clé-12345", "printable ASCII"),
        (b"12345678", "must be text, not bytes"),
        (None, "must be text, not NoneType"),
    ],
)
def test_anything_else_is_named_without_being_shown(key: object, told: str) -> None:
    found = problem(key)
    assert found is not None
    assert told in found
    assert not key or str(key) not in found


def test_which_characters_will_do_depends_on_their_place() -> None:
    letters = [chr(code) for code in (*range(0x180), 0x2028, 0xD800, 0xFF21)]
    assert [x for x in letters if problem(f"123{x}4567") is None] == [chr(code) for code in range(0x20, 0x7F)]
    for at_the_end in ("{}1234567", "1234567{}"):
        fine = [x for x in letters if problem(at_the_end.format(x)) is None]
        assert fine == [chr(code) for code in range(0x21, 0x7F)]


def test_a_hundred_thousand_keys_are_all_different_and_well_formed() -> None:
    makers = [KeyMaker(SYSTEM) for _ in range(2)]
    keys = [maker() for maker in makers for _ in range(50_000)]
    assert len(set(keys)) == 100_000
    assert problem(keys[0]) is problem(keys[-1]) is None


def test_threads_that_share_a_maker_get_different_keys() -> None:
    maker, keys = KeyMaker(SYSTEM), []
    threads = [threading.Thread(target=lambda: keys.extend(maker() for _ in range(5_000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 20_000


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_draws_its_own_bits(copied: type) -> None:
    maker = KeyMaker(SYSTEM)
    other = copied(maker)
    assert maker().split("-")[0] != other().split("-")[0]


def test_the_bits_come_from_the_runtime_once() -> None:
    maker = KeyMaker(JumpingRuntime(seed=7))
    again = KeyMaker(JumpingRuntime(seed=7))
    assert [maker(), maker()] == [again(), again()]
    assert maker().endswith("-3")


def test_a_forked_child_draws_its_own_bits() -> None:
    maker = KeyMaker(SYSTEM)
    maker()
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # Python 3.12 warns of forking beside threads: here the child only draws
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        os.write(writing, maker().encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading) as end:
        theirs = end.read()
    ours = maker()
    assert problem(theirs) is None
    assert theirs.split("-")[0] != ours.split("-")[0]
    assert ours.endswith("-2")


def test_the_fork_hook_has_every_maker_draw_again() -> None:
    maker = KeyMaker(SYSTEM)
    before = maker()
    idempotency._after_fork()
    assert maker().split("-")[0] != before.split("-")[0]


def test_a_key_is_remembered_with_its_body_for_a_day() -> None:
    used = UsedKeys()
    assert not used.conflict("k", b"a", 0.0)
    assert not used.conflict("k", b"a", 10.0)
    assert used.conflict("k", b"b", KEY_LIFETIME - 1)
    assert not used.conflict("k", b"b", KEY_LIFETIME)
    assert used.conflict("k", b"a", KEY_LIFETIME + 1)


def test_the_oldest_keys_are_forgotten_first() -> None:
    used = UsedKeys(size=2)
    for name in "abc":
        used.conflict(name, b"1", 0.0)
    assert not used.conflict("a", b"2", 0.0)
    assert used.conflict("c", b"2", 0.0)
