"""Checking a request's fields, all faults at once."""
