"""Shared access signatures."""
