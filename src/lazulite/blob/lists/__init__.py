"""Pages of lists: the blobs of a container, and the blobs with some tags."""
