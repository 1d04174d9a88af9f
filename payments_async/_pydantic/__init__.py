"""Schemas of requests and records for pydantic. Only pydantic has them loaded."""
