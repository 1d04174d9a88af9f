"""Keys and base URLs as values."""

from __future__ import annotations

import gc
import weakref

from hypothesis import example, given
from hypothesis import strategies as st

from payments_async._http.head import address
from payments_async._http.types import Secret
from payments_async._request.auth import RotatingKey, check_base_url, hidden, key_source, last_key, read_key
from payments_async.errors import ConfigurationError

SECRET = "sk_sandbox_" + "s3cret-_" * 12


def test_a_fingerprint_tells_keys_apart_and_says_nothing_of_them() -> None:
    one, same, other = (read_key(text).fingerprint for text in (SECRET, SECRET, SECRET + "x"))
    assert one == same != other
    assert len(one) == 16
    assert not any(part in one for part in ("s3cret", "sandbox"))


def test_a_secret_hides_itself_and_every_part_of_itself() -> None:
    secret = hidden(SECRET)
    assert isinstance(secret, Secret)
    for shown in (repr(secret), repr(secret[:80]), repr(secret[0]), repr([secret]), repr({"a": secret})):
        assert "s3cret" not in shown
    assert secret[3:10] == SECRET[3:10]
    assert "".join([secret]) == SECRET
    assert hidden(7) == 7
    assert hidden(None) is None


@given(
    host=st.text(st.sampled_from("aZ0.-_:[]*%/@!~'(<\x7f"), min_size=1, max_size=12),
    path=st.text(st.sampled_from("a/%.*\"<\x7f'`"), max_size=8),
)
@example(host="*", path="")
@example(host="a%2f", path="")
@example(host="[::1]", path="/%zz")
@example(host="a", path="/\x7f")
def test_an_address_is_taken_only_if_requests_can_go_there(host: str, path: str) -> None:
    try:
        taken = check_base_url(f"https://{host}{path}/v1")
    except ConfigurationError:
        return
    url = address(f"{taken}/payouts")
    assert url.host
    assert url.raw_path.endswith("/v1/payouts")


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
    source = key_source(lambda: text, None, "https://pay.test/v1")
    first = source()
    assert source() is first
    dropped = weakref.ref(first)
    del first
    text = SECRET + "x"
    assert source().authorization == f"Bearer {SECRET}x"
    gc.collect()
    assert dropped() is None
