"""Copies of blobs."""
