"""The versions at which the Table service changed, oldest first: its rows of the table in `protocol/version.py`.

Each constant is the first version with the behaviour in its text. The behaviour of older versions follows "Before:".
Source: reference §2.
"""

BATCH_SINCE = "2009-04-14"
"""Entity group transactions. Before: 400 `InvalidUri`."""
UPSERT_SINCE = "2011-08-18"
"""PUT, MERGE and PATCH without `If-Match` insert or change an entity. Before: 400 `InvalidInput`."""
SELECT_SINCE = "2011-08-18"
"""`$select` and OData 2.0. Before: 400 `InvalidInput`; 400 `InvalidHeaderValue` for OData 2.0."""
JSON_SINCE = "2013-08-15"
"""JSON and OData 3.0. Before: 415 `JsonFormatNotSupported`; 400 `InvalidHeaderValue` for OData 3.0 without JSON."""
PREFER_SINCE = "2013-08-15"
"""`Prefer` on inserts. Before: it is ignored, and the response has the entity."""
ATOM_BEFORE = "2015-12-11"
"""Atom is rejected: 415 `AtomFormatNotSupported`. Before: Atom is accepted; from 2013-08-15 on, JSON too."""
ODATA_HEADER_BEFORE = "2015-12-11"
"""Of OData responses, only the parts of a batch have `DataServiceVersion`. Before: every successful one has it, except
the response to a batch as a whole."""
