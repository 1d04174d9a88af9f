"""The sandbox's state in a file."""
