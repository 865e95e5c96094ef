"""Concurrent histories of one partition, and whether any order of the operations explains them."""
