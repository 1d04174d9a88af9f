"""Waiting for records: the schedule of readings, and the sweep of a list that waits and webhooks share."""
