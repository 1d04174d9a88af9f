"""The shop in Django: `uvicorn shop.asgi:application`."""
