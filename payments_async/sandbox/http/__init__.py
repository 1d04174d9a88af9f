"""What the sandbox needs to speak HTTP: the server, event streams, and the files of its pages."""
