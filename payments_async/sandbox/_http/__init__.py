"""HTTP for the sandbox: the server, and event streams."""
