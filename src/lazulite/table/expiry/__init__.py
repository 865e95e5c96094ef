"""When the entities of a table expire, and their removal."""
