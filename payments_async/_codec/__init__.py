"""Bytes to records and back: JSON decoded by msgspec and cattrs, requests encoded once."""
