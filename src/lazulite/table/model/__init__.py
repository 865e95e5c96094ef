"""The data model: EDM types, entities, and entities as rows."""
