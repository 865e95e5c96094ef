"""The Blob service, which is not served yet: its error codes, models and payloads."""

from lazulite.blob.errors import CODES
from lazulite.protocol.errors import register_codes

register_codes(CODES)
