"""Receiving with aiohttp's web server: `app.add_routes(routes(receiver))`."""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from .receiver import WebhookReceiver


def routes(receiver: WebhookReceiver, prefix: str | None = None) -> list[web.RouteDef]:
    """Make the routes of a receiver, for `web.Application.add_routes`.

    Args:
        receiver: takes the deliveries.
        prefix: the path they arrive at; that of the receiver's `base_url` when absent. It differs where the
            application is mounted below another, or behind a proxy that takes a part off.
    """

    async def receive(request: web.Request) -> web.Response:
        answer = await receiver.receive(
            path=request.raw_path,
            body=request.content.iter_any(),
            method=request.method,
            headers=request.headers,
        )
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    path = urlsplit(receiver.base_url).path if prefix is None else prefix
    return [web.route("*", f"{path.rstrip('/')}/{{token}}", receive)]
