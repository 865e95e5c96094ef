"""Worker processes: start, supervision and shared output."""
