"""The operations on pages of page blobs."""
