"""What the pages of blobs are made of: lists, previews, archives, shared URLs and jobs."""
