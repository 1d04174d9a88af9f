"""HTTP for the sandbox."""
