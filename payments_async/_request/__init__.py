"""One request, from its arguments to its record or error.

What stands in parentheses, such as (Errors; gap P), is in `docs/interface.md`.
"""
