"""Waiting for records: the schedule of readings and the shared reading of a list."""
