"""The interface as an OpenAPI 3.1 document: `python -m tests.fidelity.description` writes docs/openapi.json.

It has tables of its own, written from `docs/interface.md` and from nothing else: neither the client nor the
sandbox is imported here, so that the three can be held against each other. What the interface does not show
carries `x-gap`, with the letter of its last section.
"""
