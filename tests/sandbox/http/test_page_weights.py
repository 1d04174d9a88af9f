"""Every page that a link leads to is light, with all that it loads."""

from __future__ import annotations

from tests.campaigns.page_weights import heaviest


def test_every_page_that_a_link_leads_to_weighs_less_than_60_kb() -> None:
    count, size, path = heaviest(each=1)
    assert count > 150, "pages of every kind were found"
    assert size < 60_000, path
