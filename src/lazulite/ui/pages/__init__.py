"""What makes the context of each page, and what its actions do."""
