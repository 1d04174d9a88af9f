"""Values, tables and rules that every part of the sandbox uses."""
