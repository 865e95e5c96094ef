"""Sockets: accepting connections, TLS, and the progress of TCP."""
