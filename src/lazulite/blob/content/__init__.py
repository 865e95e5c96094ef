"""The bytes of blobs, in and out, and their digests."""
