"""What each environment of `tools.release.installing` runs, by its extra. None needs more than its extra."""

from __future__ import annotations

from typing import Final

NOTHING: Final = """
import subprocess, sys
import payments_async, payments_sync

assert not {"cyclopts", "rich", "sqlalchemy", "aiosqlite", "babel"} & set(sys.modules)
payments_sync.Payments("sk_sandbox_x", base_url="https://service.test/v1").close()


def run(*words):
    return subprocess.run([sys.executable, "-m", "payments_async", *words], capture_output=True, text=True)


helped = run("--help")
assert helped.returncode == 0 and 'pip install "payments-sdk[all]"' in helped.stdout, helped
refused = run("demo")
assert refused.returncode == 2 and refused.stderr.count("\\n") == 1, refused
assert refused.stderr.endswith('pip install "payments-sdk[cli,sandbox]"\\n'), refused.stderr
"""

CLI: Final = """
import subprocess

helped = subprocess.run(["payments", "--help"], capture_output=True, text=True, check=True)
assert "payouts" in helped.stdout
refused = subprocess.run(["payments", "payouts", "status", "x"], capture_output=True, text=True)
assert refused.stderr.endswith('pip install "payments-sdk[bulk]"\\n'), refused.stderr
"""

SANDBOX: Final = """
from payments_async.sandbox import Sandbox
from payments_sync import Payments

with Sandbox() as sandbox, Payments(sandbox.api_key, base_url=sandbox.base_url) as client:
    assert client.checkouts.create(amount=50, currency="GHS").url
"""

BULK: Final = """
from payments_sync import Instrument, Payments, PayoutRequest
from payments_sync.bulk import PayoutBatch

wallet = Instrument.phone("+233200000001", "GH")
rows = [("emp-1", PayoutRequest(amount="10.50", currency="GHS", method="mobile_money", instrument=wallet))]
with Payments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1") as client:
    with PayoutBatch.open("june.ledger", client) as batch:
        batch.load(rows, batch_id="june")
        assert batch.status().rows == 1
"""

POSTGRESQL: Final = """
from payments_sync import Payments

Payments("sk_sandbox_x", base_url="https://service.test/v1", limit_store="postgresql://127.0.0.1/d").close()
"""

PARQUET: Final = """
import pyarrow, pyarrow.parquet
from payments_async.bulk.sources import open_source

pyarrow.parquet.write_table(pyarrow.table({"amount": ["1.00"]}), "june.parquet")
open_source("june.parquet")
"""

REDIS: Final = """
from payments_sync import Payments

Payments("sk_sandbox_x", base_url="https://service.test/v1", limit_store="redis://127.0.0.1").close()
"""

OTEL: Final = """
from payments_async import AsyncPayments
from payments_async.otel import OpenTelemetry
AsyncPayments("sk_sandbox_x", base_url="http://127.0.0.1:9/v1", on_event=OpenTelemetry())
"""

SPEED: Final = "import payments_async, uvloop"

MCP: Final = """
import subprocess

served = subprocess.run(["payments", "mcp"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
assert served.returncode == 0, served
assert served.stdout == "" and "reads only" in served.stderr, served
"""

ALL: Final = """
import subprocess

subprocess.run(["payments", "demo", "--payouts", "20", "--json"], check=True, capture_output=True)
"""

PROGRAMS: Final = {
    "": NOTHING,
    "cli": CLI,
    "sandbox": SANDBOX,
    "bulk": BULK,
    "postgresql": POSTGRESQL,
    "parquet": PARQUET,
    "redis": REDIS,
    "otel": OTEL,
    "speed": SPEED,
    "mcp": MCP,
    "all": ALL,
}
