"""The HTTP library is imported once, when a first client is made; the package alone imports none of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from payments_async import AsyncPayments
from payments_async.errors import ConfigurationError
from tests.conftest import BASE_URL, KEY
from tests.support.canary import NEEDLE, told_by
from tests.support.surfaces import make_client

PROGRAM = """
import asyncio, sys

class Watch:
    imported = 0
    def find_spec(self, name, path=None, target=None):
        Watch.imported += name.partition(".")[0] == "aiohttp"

sys.meta_path.insert(0, Watch())
from payments_async import AsyncPayments, APIConnectionError
assert Watch.imported == 0, "the package alone needs no HTTP"
client = AsyncPayments("sk_sandbox_0123456789", base_url="http://127.0.0.1:9/v1", max_retries=0)
assert Watch.imported, "made"
Watch.imported = 0

async def main():
    async with client:
        ended = await asyncio.gather(client.payouts.list(), client.payouts.list(), return_exceptions=True)
        assert [type(each) for each in ended] == [APIConnectionError] * 2, ended

asyncio.run(main())
assert not Watch.imported, "by a call"
"""


def test_making_a_client_imports_the_http_library_and_calls_import_no_more_of_it() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], check=True, timeout=300)


@pytest.mark.parametrize(
    "proxy",
    ["proxy with user:secret", "http://user:1/secret@proxy.test:3128", "http://proxy.test:3128/secret"],
)
def test_a_proxy_is_checked_when_the_client_is_made(proxy: str) -> None:
    with pytest.raises(ConfigurationError, match=r"absolute .*ends with its port; percent-encode") as refused:
        AsyncPayments(KEY, base_url=BASE_URL, proxy=proxy)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_missing_library_is_an_error_that_shows_no_proxy_password(
    surface: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "payments_async._http.transport", None)
    told = r"the HTTP library, aiohttp, cannot be imported \(ModuleNotFoundError: "
    with pytest.raises(ConfigurationError, match=told) as refused:
        make_client(surface, KEY, base_url=BASE_URL, proxy=f"http://user:{NEEDLE}@proxy.test:1")
    assert NEEDLE not in told_by(refused.value)
    assert (refused.value.effect, refused.value.__context__) == ("none", None)
