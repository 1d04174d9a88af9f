"""HTTP for the sandbox: the server, event streams, and the files of its pages."""
