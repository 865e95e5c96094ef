"""Blob Batch."""
