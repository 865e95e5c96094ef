"""HTTP/1.1: the states of a connection, parsing, encoding and timeouts."""
