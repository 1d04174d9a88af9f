"""aiosqlite without its thread: each call runs on the simulated loop, at once or when the disk is ready."""

from __future__ import annotations

import sqlite3
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

_JOB = tuple[Any, Callable[[], Any]]


@attrs.define(eq=False)
class Opened:
    """One SQLite connection of one process."""

    host: str
    path: str
    adapter: Any
    raw: sqlite3.Connection | None = None
    changes: int = 0
    dead: bool = False


class NoThread:
    """In place of aiosqlite's."""

    daemon = True

    def start(self) -> None:
        """Nothing to start."""


class Desk:
    """Takes the calls of one connection, one after the other; the machine's disk delays and commits them."""

    def __init__(self, disk: Any, opened: Opened) -> None:
        self._disk, self._opened = disk, opened
        self._jobs: deque[_JOB] = deque()
        self._busy = False

    def put_nowait(self, job: _JOB) -> None:
        """As aiosqlite hands it over."""
        self._jobs.append(job)
        if not self._busy:
            self._work()

    def _work(self) -> None:
        self._busy = False
        while self._jobs and not self._busy:
            job = self._jobs.popleft()
            delay = self._disk.delay() if _is_commit(job[1]) else 0.0
            if delay and not self._opened.dead:
                self._busy = True
                self._disk.later(delay, lambda job=job: self._do(job))  # type: ignore[misc] # bound now
            else:
                self._do(job)

    def _do(self, job: _JOB) -> None:
        future, function = job
        result, error = self._perform(function)
        delay = self._disk.delay() if _is_commit(function) else 0.0
        if delay and not self._opened.dead:
            self._busy = True
            self._disk.later(delay, lambda: self._tell(future, result, error, on=True))
        else:
            self._tell(future, result, error, on=self._busy)

    def _perform(self, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        try:
            if self._opened.dead:
                raise sqlite3.ProgrammingError("the process is no more")
            if _is_commit(function):
                return self._disk.commit(self._opened, function), None
            return function(), None
        except Exception as error:
            return None, error

    def _tell(self, future: Any, result: Any, error: BaseException | None, *, on: bool) -> None:
        if future is not None and not future.done():
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)
        if on:
            self._work()


def _is_commit(function: Callable[[], Any]) -> bool:
    return getattr(getattr(function, "func", None), "__name__", "") == "commit"
