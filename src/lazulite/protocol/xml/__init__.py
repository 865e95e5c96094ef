"""XML documents: parsing with limits, and serialization."""
