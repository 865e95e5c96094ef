"""Tables of entities."""
