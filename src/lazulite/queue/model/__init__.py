"""Messages as rows: their keys and values, pop receipts, and the commits that change them."""
