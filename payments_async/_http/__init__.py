"""Sending requests: the aiohttp transport, its connections and its failures."""
