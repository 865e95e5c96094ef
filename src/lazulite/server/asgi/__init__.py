"""The service under an ASGI 3 server."""
