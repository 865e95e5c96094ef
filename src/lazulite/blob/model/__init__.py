"""What the rows of blobs mean, apart from storage and HTTP."""
