"""The Blob service. Importing it registers its error codes."""

from lazulite.blob.errors import CODES
from lazulite.protocol.errors import register_codes

register_codes(CODES)
