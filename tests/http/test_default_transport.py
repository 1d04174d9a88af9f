"""The HTTP library is imported once, when a first client is made; the package alone imports none of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from payments_async._http import default_transport
from payments_async._runtime import SYSTEM
from payments_async.errors import ConfigurationError

WATCH = """
import asyncio, sys, warnings

class Watch:
    imported = 0
    def find_spec(self, name, path=None, target=None):
        Watch.imported += name.partition(".")[0] == "aiohttp"

def check_made():
    assert Watch.imported, "made"
    Watch.imported = 0

sys.meta_path.insert(0, Watch())
KEY, NOWHERE = "sk_sandbox_0123456789", "http://127.0.0.1:9/v1"
"""
AT_START_UP = """
from payments_async import AsyncPayments, APIConnectionError
assert Watch.imported == 0, "the package alone needs no HTTP"
client = AsyncPayments(KEY, base_url=NOWHERE, max_retries=0)
check_made()

async def main():
    async with client:
        ended = await asyncio.gather(client.payouts.list(), client.payouts.list(), return_exceptions=True)
        assert [type(each) for each in ended] == [APIConnectionError] * 2, ended

asyncio.run(main())
assert not Watch.imported, "by a call"
"""
BLOCKING = """
from payments_sync import APIConnectionError, Payments
assert Watch.imported == 0, "the package alone needs no HTTP"
warnings.simplefilter("ignore")

async def notebook():
    with Payments(KEY, base_url=NOWHERE, max_retries=0) as client:
        check_made()
        try:
            client.payouts.list()
        except APIConnectionError:
            assert not Watch.imported, "by a call"
        else:
            raise AssertionError

asyncio.run(notebook())
"""


@pytest.mark.parametrize("program", [AT_START_UP, BLOCKING])
def test_making_a_client_imports_the_http_library_and_calls_import_no_more_of_it(program: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", WATCH + program], check=True, timeout=300)


BROKEN = """
import asyncio, sys, traceback
from payments_async import AsyncPayments, ConfigurationError
from payments_sync import Payments
sys.modules["aiohttp"] = None

def options():  # so that no frame of this program holds the address
    return dict(base_url="http://127.0.0.1:9/v1", proxy="http://user:" + "NEED" + "LE@proxy.test:1")

def check(cls):
    try:
        cls("sk_sandbox_0123456789", **options())
    except ConfigurationError as error:
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        assert "NEEDLE" not in told, told
        assert "aiohttp, cannot be imported (ModuleNotFoundError: " in str(error), error
        assert error.effect == "none" and error.__context__ is None
    else:
        raise AssertionError

async def on_a_loop():
    check(AsyncPayments)

check(AsyncPayments)
check(Payments)
asyncio.run(on_a_loop())
"""


def test_a_broken_installation_is_a_configuration_error_that_shows_no_proxy_password() -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BROKEN], check=True, timeout=300)


def test_a_missing_library_is_an_error_when_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "payments_async._http.transport", None)
    with pytest.raises(ConfigurationError, match="cannot be imported") as refused:
        default_transport(SYSTEM, 1.0, 1, None, None)
    assert refused.value.__context__ is None


def test_a_proxy_is_checked_when_the_client_is_made() -> None:
    assert default_transport(SYSTEM, 1.0, 1, "http://proxy.test:3128", None)
    with pytest.raises(ConfigurationError, match="absolute") as refused:
        default_transport(SYSTEM, 1.0, 1, "proxy with user:secret", None)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("proxy", ["http://user:1/secret@proxy.test:3128", "http://proxy.test:3128/secret"])
def test_a_refused_proxy_is_told_for_the_reason_of_the_check(proxy: str) -> None:
    with pytest.raises(ConfigurationError, match="ends with its port; percent-encode") as refused:
        default_transport(SYSTEM, 1.0, 1, proxy, None)
    assert "secret" not in str(refused.value)
    assert refused.value.__context__ is None
