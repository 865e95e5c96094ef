"""The Table service: Edm types, entities, payloads, filters, queries, batches, operations."""
