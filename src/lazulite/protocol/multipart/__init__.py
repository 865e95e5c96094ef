"""Multipart bodies of batches: parsing and encoding."""
