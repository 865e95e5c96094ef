"""Declared indexes: rows of a companion space, in the order of properties, that name the entities which have them."""
