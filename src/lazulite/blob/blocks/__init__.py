"""The operations on blocks of block blobs and append blobs."""
