"""One request, from arguments to record or error. In parentheses: sections and gaps of docs/interface.md."""
