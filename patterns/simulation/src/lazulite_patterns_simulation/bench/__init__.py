"""Measurements: the library against the plain SDK on the same endpoint, and a large load that is killed."""
