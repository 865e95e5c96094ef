"""The Queue service: queues, messages, visibility, pop receipts, expiration."""

from lazulite.protocol.errors import register_codes
from lazulite.queue.errors import CODES

register_codes(CODES)
