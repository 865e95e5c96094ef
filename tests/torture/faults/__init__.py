"""Faults of disk, descriptors and memory under a running server."""
