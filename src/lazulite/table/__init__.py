"""The Table service: Edm types, entities, payloads, filters, queries, batches, operations."""

from lazulite.protocol.errors import register_codes
from lazulite.table.errors import CODES

register_codes(CODES)
