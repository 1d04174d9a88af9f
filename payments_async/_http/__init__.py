"""Sending requests: the aiohttp transport, its connections, and what can fail."""
