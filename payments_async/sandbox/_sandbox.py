"""The handle: one simulated service with its address, its controls and its books."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from msgspec.structs import replace

from .._loopback import GUARDS
from .._loopback.access import Access, under
from .._loopback.peers import can_tell
from ._api.core import Core
from ._api.fault_rules import default_scenario
from ._checkout import ACTIONS, PAGES
from ._common.clock import Clock, VirtualClock, real_secret
from ._common.json import encode
from ._common.operations import CONSOLE, CONTROL_API, PREFIX
from ._common.profiles import Profile, profile_named
from ._common.rate_limits import SandboxLimits
from ._common.values import Answer, Request, RequestRefused
from ._controls import SandboxControls
from ._http.server import Server, check_bind, check_port
from ._records.tenants import authenticate
from ._records.world import is_key
from ._webhooks.sender import SenderCallbacks, WebhookSender

_CLOSED = Answer(
    403,
    {"Content-Type": "application/json", **GUARDS},
    encode(
        {
            "message": "It is not known who asks. Open the inspector at the address that `payments sandbox`"
            " prints (Python: sandbox.inspector_url), a checkout at its own url, or send the API key."
        }
    ),
)


def no_row_key(reference: str) -> None:
    """The key of the row that a payout's reference belongs to, where no rows are known."""


class Sandbox(SandboxControls):
    """An embedded payment service: stateful, deterministic, offline (`docs/interface.md`, gaps filled in).

    `profile` fills the gaps: `observed`, `hostile` or a `Profile`. `limits` are requests per minute. `seed`
    fixes every identifier. `clock` is the machine's time unless given. `port` is a free one below 32768
    unless given. Webhooks go to this machine, to private networks and to `.test` names (which are this
    machine), to no other host unless it is named in `allow_webhooks_to`.

    `scenario` is words for the requests and records that nothing else decides, such as `slow:200ms` or
    `fail:INVALID_RECIPIENT after=10s`; `UnknownWord` for another. Everything is forgotten with the sandbox.

    The user of this process (and root) reaches the server, no other user of the machine; with `shared` all
    of them do. Where the machine does not say which user a connection is from (it must be Linux), the API
    answers whoever has the API key, and the inspector is at `inspector_url`, which holds a secret.

    `bind` is an address of a network to listen on, or `0.0.0.0` for all, so that other containers reach it:
    the API with its key, all pages with the secret that their addresses hold. That of payers' pages opens
    nothing else. `api_key` is the key that they were given (`sk_sandbox_…`); unless given it is drawn from
    the seed.

    `row_key` gives the caller's own name for a payout's reference, or None. The inspector shows payouts under
    it, and finds them by it; no answer, webhook or log record has it, and no repr.

    HTTP is served, and webhooks leave, inside `with` or `async with`; `handle` needs neither. Every method
    may be called from any thread. A session's `checkout.url` leads to a page where a person pays or declines,
    as `pay` does, and lands on the `return_url` either way; that address gets no addition, because arrival
    proves nothing.
    """

    def __init__(
        self,
        *,
        profile: str | Profile = "observed",
        limits: SandboxLimits | None = None,
        seed: int = 0,
        clock: Clock | None = None,
        port: int | None = None,
        allow_webhooks_to: Iterable[str] = (),
        scenario: str | None = None,
        shared: bool = False,
        bind: str | None = None,
        api_key: str | None = None,
        row_key: Callable[[str], str | None] = no_row_key,
    ) -> None:
        if api_key is not None and not is_key(api_key):
            del api_key  # it may be a live one, and tracebacks print locals
            raise ValueError(
                "a sandbox's key is sk_sandbox_ and 8 to 200 letters, digits, - or _; it takes no live key"
            )
        if limits is not None and not isinstance(limits, SandboxLimits):
            raise TypeError(f"limits must be SandboxLimits, not {type(limits).__name__}")
        check_port(port)
        check_bind(bind, shared=shared)
        chosen = profile_named(profile) if isinstance(profile, str) else profile
        core = Core(chosen, limits or SandboxLimits(), seed)
        super().__init__(core, clock or VirtualClock.real(), chosen, allow_webhooks_to)
        self.row_key = row_key
        self._port = port
        self._bind = bind
        self._access = Access(
            real_secret(),
            passed_on=real_secret(),
            is_shared=shared,
            shared_by="payments sandbox --shared",
            is_bound=bind is not None,
        )
        self._server: Server | None = None
        self._core.default = default_scenario(scenario)
        with self.changing() as world:
            self.api_key: str = world.add_tenant("active", None, api_key)

    @property
    def base_url(self) -> str:
        """The address to give to a client, version prefix included; `RuntimeError` when it is not serving."""
        if self._server is None:
            raise RuntimeError("the sandbox is not serving; enter it: `with Sandbox() as sandbox:`")
        return f"http://{self._server.host}:{self._server.port}{PREFIX}"

    @property
    def inspector_url(self) -> str:
        """The address of the inspector, for a browser of this user; `RuntimeError` when it is not serving."""
        is_open = self._access.is_shared or (not self._access.is_bound and can_tell())
        root = "" if is_open else self._access.root
        return self.base_url.removesuffix(PREFIX) + root + CONSOLE

    def start(self) -> None:
        """Serve HTTP until `stop`; `OSError` when the port is taken, `RuntimeError` when serving already."""
        if self._server is not None:
            raise RuntimeError("the sandbox is serving already")
        clock = self.clock
        callbacks = SenderCallbacks(self._take, self._report, self._put_back, clock.now, clock.sleep)
        sender = WebhookSender(callbacks, self._allowed)
        server = Server(self._serve, clock.sleep, self._port, sender, self._access, self._bind)
        world, root = self._core.world, f"/{self._access.passed_on}" if self._access.is_bound else ""
        world.origin = f"http://{server.host}:{server.port}"
        world.pages = world.origin + root
        server.start()
        self._server, self._outbox.poke = server, sender.poke
        sender.poke()

    def stop(self) -> None:
        """Stop serving; the records stay. Without effect when it does not serve."""
        server, self._server, self._outbox.poke = self._server, None, None
        if server is not None:
            server.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        # Blocks for the milliseconds a thread and a loop take to start.
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        try:
            address = "not serving" if self._server is None else repr(self.base_url)
        except AttributeError:  # the constructor failed, and its traceback prints local variables
            return f"<{type(self).__name__}, unfinished>"
        return f"{type(self).__name__}({address}, profile={self._profile.name!r})"

    def _serve(self, request: Request) -> Answer:
        """Answer a request: by the pages and controls for the console, by the core for the API and payers."""
        if request.path.startswith(CONSOLE):
            answer = self._answer_console(request)
        elif (
            self._access.is_bound
            and request.path.startswith((PAGES, ACTIONS))
            and not (request.is_trusted or request.root)  # the secret that is passed on opens these
        ):
            answer = _CLOSED
        else:
            answer = self._answer(request)
        return _under(request.root, answer, self.origin) if request.root else answer

    def _answer_console(self, request: Request) -> Answer:
        """The control API below `/_sandbox/api/`, the inspector's pages beside it; no part of the API.

        Imported with their first request: they would make `import payments_async.sandbox` a twelfth dearer.
        """
        if not (request.is_trusted or self._has_key(request)):
            return _CLOSED
        if request.path.startswith(CONTROL_API):
            from ._control_api import answer_control

            return answer_control(self, request)
        from ._inspector import answer_page

        return answer_page(self, request)

    def _has_key(self, request: Request) -> bool:
        try:
            authenticate(request.headers.get("authorization"), request.address, self._core.world.tenants)
        except RequestRefused:
            return False
        return True


def _under(root: str, answer: Answer, origin: str) -> Answer:
    """An answer whose own addresses begin with the secret that it was asked with; Try it leads back so."""
    headers, body = answer.headers, answer.body
    if headers.get("Location", "").startswith("/"):
        headers = {**headers, "Location": root + headers["Location"]}
    if headers.get("Content-Type", "").startswith("text/html"):
        body = under(root, body.decode().replace(f'"{origin}{CONSOLE}"', f'"{CONSOLE}"')).encode()
    return replace(answer, headers=headers, body=body)
