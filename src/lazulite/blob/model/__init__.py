"""The meaning of the rows of blobs, apart from storage and HTTP."""
