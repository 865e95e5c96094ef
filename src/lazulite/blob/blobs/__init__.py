"""The operations on whole blobs."""
