"""`python manage.py test`: an order is bought, paid and heard of, against a sandbox of the test's own."""

from __future__ import annotations

import os
from unittest import mock
from urllib.parse import urlsplit

from django.test import TestCase

from payments_async.sandbox import Sandbox

from . import payments


class ShopTest(TestCase):
    def setUp(self) -> None:
        self.sandbox = self.enterContext(Sandbox())
        account = {"PAYMENTS_API_KEY": self.sandbox.api_key, "PAYMENTS_BASE_URL": self.sandbox.base_url}
        self.enterContext(mock.patch.dict(os.environ, account))
        payments.awaited.cache_clear()  # made by an earlier test, with its key
        payments.receiver.cache_clear()

    def test_an_order_is_paid_when_the_service_says_so(self) -> None:
        order = self.client.post("/orders").json()
        self.sandbox.pay(order["checkout"])
        delivery = self.sandbox.deliveries[-1]
        answer = self.client.post(urlsplit(delivery.url).path, delivery.body, "application/json")
        assert answer.status_code == 200
        assert self.client.get(f"/orders/{order['order']}").json()["paid"]
