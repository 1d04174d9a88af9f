"""The sandbox's HTTP server and its event streams."""
