"""Rows and contents of containers and blobs: where they are, and how they are changed, searched and removed."""
