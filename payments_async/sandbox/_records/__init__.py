"""Payments, payouts and tenants: their states, their JSON, and the public books."""
