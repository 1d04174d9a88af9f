"""Keys and base URLs as values."""

from __future__ import annotations

import gc
import weakref

from payments_async._http.types import Secret
from payments_async._request.auth import hidden, read_key
from payments_async._request.settings import RotatingKey, key_source, last_key

SECRET = "sk_sandbox_" + "s3cret-_" * 12


def test_a_secret_hides_itself_and_every_part_of_itself() -> None:
    secret = hidden(SECRET)
    assert isinstance(secret, Secret)
    for shown in (repr(secret), repr(secret[:80]), repr(secret[0]), repr([secret]), repr({"a": secret})):
        assert "s3cret" not in shown
    assert secret[3:10] == SECRET[3:10]
    assert "".join([secret]) == SECRET
    assert hidden(7) == 7
    assert hidden(None) is None


def test_a_call_keeps_the_key_that_it_was_given_whatever_another_thread_is_given_meanwhile() -> None:
    keys = iter([read_key("sk_sandbox_first"), read_key("sk_sandbox_second")])

    class Raced(RotatingKey):
        """Another thread asks right after this one has noted its key."""

        races = True

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name == "last" and value is not None and self.races:
                self.races = False
                self()

    source = Raced(lambda: next(keys))
    assert source().authorization == "Bearer sk_sandbox_first"
    assert last_key(source) == source.last


def test_what_was_made_for_a_key_is_kept_as_long_as_the_key_and_no_longer() -> None:
    text = SECRET
    source = key_source(lambda: text, None, "https://pay.test/v1", verified=True)
    first = source()
    assert source() is first
    dropped = weakref.ref(first)
    del first
    text = SECRET + "x"
    assert source().authorization == f"Bearer {SECRET}x"
    gc.collect()
    assert dropped() is None
