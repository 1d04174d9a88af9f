"""The service's operations: requests in, answers out."""
