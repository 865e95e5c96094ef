"""The limits of messages, and of lists. Seconds are whole."""

TEXT_BYTES_MAX = 64 * 1024
SHORT_TEXT_BYTES_MAX = 8 * 1024
"""Before `LONG_TEXT_SINCE`."""
BODY_BYTES_MAX = 512 * 1024
"""Bytes of the XML around a text: each byte of it may be an escape of six characters."""
BODY_BYTES_STATED = 131_584
"""The bound of a body that a rejection states, as recorded. *Unverified*: whether the service accepts more."""
VISIBILITY_SECONDS_MAX = 7 * 24 * 3600
SHORT_VISIBILITY_SECONDS_MAX = 2 * 3600
"""Before `LONG_VISIBILITY_SINCE`."""
VISIBILITY_SECONDS = 30
"""The default of a get."""
TTL_SECONDS = 7 * 24 * 3600
"""The default of a put; the longest one before `LONG_TTL_SINCE`."""
TTL_SECONDS_MAX = 2**31 - 1
MESSAGES_MAX = 32
"""Messages of one get or peek."""
QUEUES_MAX = 5000
"""Queues of one page of a list."""
PAGE_METADATA_BYTES_MAX = 2 * 1024 * 1024
"""Bytes of metadata after which a page of a list ends."""
READ_AHEAD_BYTES_MAX = 64 * 1024 * 1024
"""Memory for messages that are read ahead, of all queues together."""
