"""`python -m tests.typing.editors`: what editors, IPython and `help()` show of the public methods.

Asks pyright's language server (VS Code and others), jedi over source (vim, Spyder), jedi over live objects
(IPython, notebooks) and Python's own `help()` for the names of arguments, on both surfaces. A cell is the
number of names found, of those there are. Exit code 1: one is missing that is not in `BEYOND_REACH`. `--root`
asks about another checkout. Run by `nox -s editors`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pydoc
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import attrs
import jedi  # type: ignore[import-untyped,import-not-found,unused-ignore] # only `nox -s typing` has it

SETUP = """\
from payments_{surface} import {client}, Payout
async def main(client: {client}) -> None:
    prepared = client.payouts.prepare(amount=1, currency="XOF", method="m", instrument={{}})
    sent = {wait}client.send(prepared)
    found = {wait}client.resolve(prepared)
    made = {wait}client.payouts.create(amount=1, currency="XOF", method="m", instrument={{}})
    """
SURFACES = {"async": ("AsyncPayments", "await "), "sync": ("Payments", "")}
METHODS = {
    "payouts.create": "PayoutArguments",
    "payouts.list": "PayoutFilters",
    "payouts.find": "Search",
    "payment_intents.create": "PaymentIntentArguments",
    "checkouts.prepare": "CheckoutPreparation",
    "checkouts.retrieve": "ReadOptions",
}
"""Methods, and the TypedDicts of their arguments."""
TYPES = {"sent": "Payout", "found": "Payout", "made.id": "str"}
"""Expressions, and the types that an editor shows for them."""
KEY = {"api_key": "sk_sandbox_editor", "base_url": "http://127.0.0.1:9/v1"}
READERS = ("pyright", "jedi", "IPython", "help()")
BEYOND_REACH: Mapping[str, tuple[str, ...]] = {
    "jedi": ("type",),
    "IPython": ("type",),
    "help()": ("completion", "members", "type"),
}
"""What a reader does not show."""


@attrs.frozen
class Question:
    """A piece of code with the cursor at its end, and what an answer should name."""

    kind: str
    code: str
    wanted: frozenset[str]


def questions(root: Path) -> Iterator[Question]:
    """All questions about one surface."""
    keys = importlib.import_module("payments_async.arguments")
    for method, name in METHODS.items():
        wanted = frozenset(getattr(keys, name).__annotations__)
        for kind in ("signature", "completion", "hover"):
            yield Question(kind, f"client.{method}" + "(" * (kind != "hover"), wanted)
    client = frozenset({"checkouts", "payment_intents", "payouts", "methods"})
    yield Question("members", "CLIENT.", client)
    yield Question("members", "CLIENT.payouts.", frozenset({"create", "prepare", "list", "iterate", "find"}))
    for code, shown in TYPES.items():
        yield Question("type", code, frozenset({shown}))


class LanguageServer:
    """pyright's language server, spoken to in JSON over pipes."""

    def __init__(self, root: Path) -> None:
        command = [str(Path(sys.executable).with_name("pyright-langserver")), "--stdio"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._ids = 0
        self._uri = (root / "editors_probe.py").as_uri()
        self._version = 0
        documents = {
            "completion": {"completionItem": {"documentationFormat": ["plaintext"]}},
            "hover": {"contentFormat": ["plaintext"]},
            "signatureHelp": {"signatureInformation": {"documentationFormat": ["plaintext"]}},
        }
        folder = {"uri": root.as_uri(), "name": root.name}
        capabilities = {"textDocument": documents, "workspace": {"configuration": True}}
        self.ask(
            "initialize",
            {"processId": None, "workspaceFolders": [folder], "rootUri": root.as_uri()}
            | {"capabilities": capabilities},
        )
        self._tell("initialized", {})

    def open(self, text: str) -> None:
        """Show the server a text."""
        self._version += 1
        document = {"uri": self._uri, "version": self._version}
        if self._version == 1:
            self._tell(
                "textDocument/didOpen", {"textDocument": {**document, "languageId": "python", "text": text}}
            )
        else:
            changes = {"textDocument": document, "contentChanges": [{"text": text}]}
            self._tell("textDocument/didChange", changes)

    def at(self, what: str, text: str, back: int = 0) -> Any:
        """Ask about the end of a text, or some characters before it."""
        lines = text.split("\n")
        place = {"line": len(lines) - 1, "character": len(lines[-1]) - back}
        return self.ask(f"textDocument/{what}", {"textDocument": {"uri": self._uri}, "position": place})

    def ask(self, method: str, params: Any) -> Any:
        """Send a request, and answer the server's own until its answer is there."""
        self._ids += 1
        self._send({"id": self._ids, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") == self._ids and "method" not in message:
                return message.get("result")
            if "method" in message and "id" in message:
                items = (message.get("params") or {}).get("items", [])
                settings = [{"pythonPath": sys.executable} for _ in items]
                self._send({"id": message["id"], "result": settings or None})

    def close(self) -> None:
        """End the server."""
        self._process.kill()
        self._process.communicate()

    def _tell(self, method: str, params: Any) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self._process.stdout.read(length))


def by_pyright(server: LanguageServer, text: str, kind: str) -> str:
    """What VS Code shows."""
    server.open(text)
    if kind in ("hover", "type"):
        return str(((server.at("hover", text, 1) or {}).get("contents") or {}).get("value"))
    if kind == "signature":
        found = (server.at("signatureHelp", text) or {}).get("signatures", [])
        return " ".join(each["label"] for each in found)
    found = server.at("completion", text) or {}
    return " ".join(item["label"] for item in found.get("items", []))


def by_jedi(script: Any, text: str, kind: str) -> str:
    """What an editor with jedi shows, or IPython."""
    lines = text.split("\n")
    place = (len(lines), len(lines[-1]))
    if kind == "signature":
        return " ".join(each.to_string() for each in script.get_signatures(*place))
    if kind == "hover":
        return " ".join(each.docstring() for each in script.infer(place[0], place[1] - 1))
    if kind == "type":
        return " ".join(each.name for each in script.infer(place[0], place[1] - 1))
    return " ".join(each.name for each in script.complete(*place))


def by_help(surface: str, question: Question) -> str:
    """What `help()` shows; of a type, and of what is completed, nothing."""
    client = getattr(importlib.import_module(f"payments_{surface}"), SURFACES[surface][0])
    target = client(**KEY)
    *above, name = question.code.removeprefix("client.").rstrip("(").split(".")
    if question.kind not in ("signature", "hover"):
        return ""
    for each in (*above, name):
        target = getattr(target, each)
    return str(signature(target)) if question.kind == "signature" else pydoc.plain(pydoc.render_doc(target))


def found(question: Question, shown: str) -> int:
    """How many of the wanted names an answer shows, as words."""
    words = set("".join(sign if sign.isalnum() or sign == "_" else " " for sign in shown).split())
    return 0 if question.kind == "type" and "None" in words else len(question.wanted & words)


def answers(root: Path, surface: str, server: LanguageServer) -> Iterator[tuple[Question, list[int]]]:
    """Each question of a surface, with the number of names that each reader shows."""
    client, wait = SURFACES[surface]
    live = getattr(importlib.import_module(f"payments_{surface}"), client)
    project = jedi.Project(root, added_sys_path=[])
    for question in questions(root):
        code = question.code.replace("CLIENT", client)
        text = SETUP.format(surface=surface, client=client, wait=wait) + code
        script = jedi.Script(text, path=root / "editors_probe.py", project=project)
        shell = jedi.Interpreter(code, [{"client": live(**KEY), client: live}])
        readers: list[Callable[[], str]] = [
            lambda: by_pyright(server, text, question.kind),  # noqa: B023 - called at once
            lambda: by_jedi(script, text, question.kind),  # noqa: B023 - called at once
            lambda: by_jedi(shell, code, question.kind),  # noqa: B023 - called at once
            lambda: by_help(surface, question),  # noqa: B023 - called at once
        ]
        yield question, [found(question, read()) for read in readers]


def main() -> int:
    """0, or 1 when a reader shows fewer names than it could."""
    parser = argparse.ArgumentParser(prog="python -m tests.typing.editors", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[2])
    root = parser.parse_args().root
    sys.path.insert(0, str(root))
    server, missing = LanguageServer(root), list[str]()
    try:
        for surface in SURFACES:
            print(f"| payments_{surface} | asked for | {' | '.join(READERS)} |")
            print(f"| --- | --- |{' --- |' * len(READERS)}")
            for question, counts in answers(root, surface, server):
                cells = [f"{count} of {len(question.wanted)}" for count in counts]
                print(f"| `{question.code}` | {question.kind} | {' | '.join(cells)} |", flush=True)
                missing += [
                    f"{reader}: {question.code} ({question.kind})"
                    for reader, count in zip(READERS, counts, strict=True)
                    if count < len(question.wanted) and question.kind not in BEYOND_REACH.get(reader, ())
                ]
    finally:
        server.close()
    print(*missing, sep="\n", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
