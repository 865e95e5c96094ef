"""Sockets, HTTP/1.1 and the life of a process. The only package that touches the network."""
