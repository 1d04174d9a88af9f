"""pytest plugin: the tests' API key is a canary, and a run in which it sings fails.

Scanned are all log records, all events of all clients, the reports of all tests with what they captured, and
what is written to the terminal. A test that shows the key on purpose says so with `@pytest.mark.shows_key`.
Under pytest-xdist the workers scan their own tests and the controller collects what they found.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any

import attrs
import pytest

from payments_async._emitter import Emitter
from payments_async.events import Event
from tests.support.canary import Scanner

MARK = "shows_key"


class _Records(logging.Handler):
    """Scans every record that reaches the root logger."""

    def __init__(self, look: Callable[..., None]) -> None:
        super().__init__(logging.NOTSET)
        self._look = look

    def emit(self, record: logging.LogRecord) -> None:
        self._look(f"a log record of {record.name!r}", repr(vars(record)), record.getMessage())


@attrs.define(eq=False)
class Canary:
    """One process's watch."""

    scanner: Scanner = attrs.field(factory=Scanner)
    test: str = ""
    """The test that is running."""
    allowed: bool = False
    _handler: logging.Handler = attrs.field(init=False)
    _emit: Callable[[Emitter, Event], None] = Emitter.emit

    @_handler.default
    def _make_handler(self) -> logging.Handler:
        return _Records(self.look)

    def look(self, where: str, *texts: object) -> None:
        """Scan, unless the running test may show the key."""
        if not self.allowed:
            self.scanner.look(f"{where} in {self.test}" if self.test else where, *texts)

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Listen to the root logger, to every client's events, and to the terminal where there is one."""
        if session.config.pluginmanager.has_plugin("terminalreporter"):
            writer: Any = session.config.get_terminal_writer()
            writer.write = _scanned(self.look, writer.write)
        logging.getLogger().addHandler(self._handler)
        Emitter.emit = self._emit_scanned()  # type: ignore[method-assign, assignment] # put back at the end

    def _emit_scanned(self) -> Callable[[Emitter, Event], None]:
        def emit(emitter: Emitter, event: Event) -> None:
            self.look(f"the event {type(event).__name__}", event)
            self._emit(emitter, event)

        return emit

    def pytest_unconfigure(self) -> None:
        """Leave the process as it was."""
        logging.getLogger().removeHandler(self._handler)
        Emitter.emit = self._emit  # type: ignore[method-assign, assignment] # as it was

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note which test runs, and whether it may show the key."""
        self.test, self.allowed = item.nodeid, item.get_closest_marker(MARK) is not None
        try:
            return (yield)
        finally:
            self.test, self.allowed = "", False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Scan a test's report and what was captured during it."""
        report = yield
        self.look(f"the {report.when} report", report.longreprtext, *map(repr, report.sections))
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker of pytest-xdist ended: take over what it found."""
        self.scanner.found += getattr(node, "workeroutput", {}).get("canary", [])

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, None, None]:
        """After everything was written: fail a run that showed the key."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["canary"] = self.scanner.found
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        yield
        if self.scanner.found and terminal is not None:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            for place in self.scanner.found:
                terminal.write_line(f"canary: the API key showed in {place}", red=True)


def pytest_configure(config: pytest.Config) -> None:
    """Start the watch, once in every process."""
    config.addinivalue_line("markers", f"{MARK}(reason): the test shows the API key on purpose")
    config.pluginmanager.register(Canary(), "canary")


def _scanned(look: Callable[..., None], write: Callable[..., None]) -> Callable[..., None]:
    def scanned(text: str, **markup: Any) -> None:
        look("the terminal's text", text)
        write(text, **markup)

    return scanned
