"""One request, from its arguments to its record or error."""
