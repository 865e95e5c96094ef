"""Leases and conditional writes of blobs by several clients, and whether any order of the operations explains them."""
