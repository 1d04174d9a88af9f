"""Batches paid on the engine that you run already: a module for each, imported by its own name.

An engine decides which step runs when, and where, and shows it. The ledger alone decides who may send which
rows, and what is done. Through an engine travel the names of a batch and its file, a chunk's number,
confirmed totals and stop rules, and nothing else: it stores, logs and shows no account and no key.
"""

from __future__ import annotations
