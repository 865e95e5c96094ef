"""Bytes on their way in and out: received, read, copied from a source, and checked by digests."""
