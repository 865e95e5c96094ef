"""The last requests of each service, heads only, which show what clients did."""
