"""The hosted checkout at `/checkout/{id}`: where a payer pays, and the simulated bank and phone behind it.

Pages are functions of the world and the request, without I/O. They are no part of the API: they need no key,
count against no limit and are not in the request log. Without JavaScript every step is a link or a form; one
small module asks for the page again each second. What `next_action` names, for merchants who show it
themselves, is at `/actions/{attempt id}/` (`attempt_pages.py`). Payment methods are fictitious
(`method_catalogue.py`).

The payer returns to the session's `return_url` as the merchant gave it, whatever the outcome. Nothing is
added that could pass for proof, because arrival proves nothing (`docs/interface.md`, What the service does).
"""

from .router import ACTIONS, PAGES, answer_payer

__all__ = ["ACTIONS", "PAGES", "answer_payer"]
