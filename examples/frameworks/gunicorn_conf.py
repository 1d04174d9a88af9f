"""gunicorn's settings for `flask_shop`: each worker is warm before it takes requests."""

from __future__ import annotations


def post_worker_init(worker: object) -> None:
    """In the worker, after the fork: threads and connections do not survive one."""
    from flask_shop import client

    client.warm_up(deadline=10)
