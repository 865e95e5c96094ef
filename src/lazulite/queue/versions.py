"""The versions at which the Queue service changed, oldest first: its rows of the table in `protocol/version.py`.

Source: reference §31.

Each constant is the first version with the behaviour in its text. The behaviour of older versions follows "Before:".
"""

DEQUEUE_COUNT_SINCE = "2009-09-19"
"""Messages have `DequeueCount`. Before: they lack it."""
UPDATE_MESSAGE_SINCE = "2011-08-18"
"""Update Message. Before: 400 `InvalidUri`."""
LONG_TEXT_SINCE = "2011-08-18"
"""Messages of up to 64 KiB. Before: 8 KiB; 413 `RequestBodyTooLarge`."""
LONG_VISIBILITY_SINCE = "2011-08-18"
"""A `visibilitytimeout` of up to seven days, on Put Message too. Before: two hours, and none on Put Message; 400
`OutOfRangeQueryParameterValue`."""
LIST_WITHOUT_URL_SINCE = "2013-08-15"
"""Lists of queues have `ServiceEndpoint`. Before: `AccountName`, and the `Url` of each queue."""
PUT_CONTENT_SINCE = "2016-05-31"
"""Put Message returns the message with its pop receipt. Before: it returns no content."""
LONG_TTL_SINCE = "2017-07-29"
"""A `messagettl` of any length, or -1 for none. Before: up to seven days; 400 `OutOfRangeQueryParameterValue`."""
BEARER_SINCE = "2017-11-09"
"""Bearer tokens on queues. Before: 400 `InvalidAuthenticationInfo`."""
CHALLENGE_SINCE = "2019-12-12"
"""A rejected bearer token for queues, and a request without credentials, get 401 with a challenge. Before: 403
`AuthenticationFailed`, and 404 `ResourceNotFound`."""
DELEGATION_SINCE = "2025-07-05"
"""User delegation keys and user delegation SAS for queues. Before: 400 `InvalidQueryParameterValue`, and 403
`AuthenticationFailed`."""
CROSS_TENANT_SINCE = "2026-04-06"
"""`DelegatedUserTid` in the request for a user delegation key. Before: 400 `UnsupportedXmlNode`."""
