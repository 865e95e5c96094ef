"""Design patterns for Azure Table storage that hold under crashes and lost answers.

What a program needs is here. Asynchronous programs take the classes with clients from `lazulite_patterns.aio`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # What `_MODULES` says, for type checkers.
    from lazulite_patterns.auditing.finding import Check, Finding
    from lazulite_patterns.auditing.run import audit
    from lazulite_patterns.checkpoints import Checkpoint, FileCheckpoint
    from lazulite_patterns.effects.errors import Rejected
    from lazulite_patterns.effects.tables import EntityKey, Stored
    from lazulite_patterns.encryption.cells import Cipher
    from lazulite_patterns.encryption.errors import Undecryptable
    from lazulite_patterns.encryption.keyring import KeyRing, WrappingKey
    from lazulite_patterns.encryption.legacy import LegacyCipher
    from lazulite_patterns.encryption.table import EncryptedTable, reencrypt
    from lazulite_patterns.entities.bags import Bag
    from lazulite_patterns.entities.columns import Column, column, index, partition, row, unique
    from lazulite_patterns.entities.conditions import Condition, QueryError
    from lazulite_patterns.entities.errors import EntityFormatError, EntityValueError, SchemaError
    from lazulite_patterns.entities.indexes import Index, Listing
    from lazulite_patterns.entities.registry import columns, entity, upgrade
    from lazulite_patterns.errors import PatternsError
    from lazulite_patterns.indexes.errors import Busy, NotUnique
    from lazulite_patterns.keys.characters import KeyFormatError, KeyValueError
    from lazulite_patterns.keys.codecs import Codec
    from lazulite_patterns.keys.components import (
        bucket,
        choice,
        custom,
        date,
        decimal,
        exact_ticks,
        integer,
        literal,
        octets,
        reverse_date,
        reverse_ticks,
        text,
        ticks,
        uuid,
        uuid7,
    )
    from lazulite_patterns.keys.guide_style import GuideStyle
    from lazulite_patterns.keys.identifiers import new_uuid7
    from lazulite_patterns.keys.key import Key
    from lazulite_patterns.keys.key_range import KeyRange
    from lazulite_patterns.keys.times import Ticks
    from lazulite_patterns.leases.lease import Lease
    from lazulite_patterns.leases.protocol import Grant, LeaseLost, LeaseTaken
    from lazulite_patterns.outcomes.errors import Absent, Conflict, Exists, OutcomeUnknown, Unavailable
    from lazulite_patterns.outcomes.retries import Policy
    from lazulite_patterns.sas import user_sas
    from lazulite_patterns.shapes.blob_log import BlobLog
    from lazulite_patterns.shapes.copies import Copies
    from lazulite_patterns.shapes.errors import Inconsistent, PeriodExpired, Referred
    from lazulite_patterns.shapes.fat import Fat
    from lazulite_patterns.shapes.large import Large
    from lazulite_patterns.shapes.links import Copied, Ref
    from lazulite_patterns.shapes.lookup import Lookup
    from lazulite_patterns.shapes.periods import Periods
    from lazulite_patterns.shapes.protocols.large import Loaded
    from lazulite_patterns.shapes.protocols.log_format import LogRecord
    from lazulite_patterns.shapes.protocols.references import BlobReference
    from lazulite_patterns.shapes.series import Series
    from lazulite_patterns.shapes.tail import Tail
    from lazulite_patterns.shapes.wide import Wide
    from lazulite_patterns.streams.layout import Event, Recorded
    from lazulite_patterns.streams.protocol import AppendTooLarge, DuplicateEvent, WrongVersion
    from lazulite_patterns.streams.stream import Stream
    from lazulite_patterns.table.lint import lint
    from lazulite_patterns.table.plan import Reads
    from lazulite_patterns.table.query import IndexQuery, Query
    from lazulite_patterns.table.reading import NotOne
    from lazulite_patterns.table.table import Table
    from lazulite_patterns.table.transaction import Transaction
    from lazulite_patterns.transactions.function_task import FunctionTask
    from lazulite_patterns.transactions.indexing import IndexTask
    from lazulite_patterns.transactions.messages import MessageTooLargeError, TaskMessage
    from lazulite_patterns.transactions.move import Move
    from lazulite_patterns.transactions.outbox import Outbox, SideEffect
    from lazulite_patterns.transactions.saga import Saga, SagaProgress, Step
    from lazulite_patterns.transactions.task import Task
    from lazulite_patterns.transactions.tasks import Tasks

__version__ = "0.1.0"

__all__ = [
    "Absent",
    "AppendTooLarge",
    "Bag",
    "BlobLog",
    "BlobReference",
    "Busy",
    "Check",
    "Checkpoint",
    "Cipher",
    "Codec",
    "Column",
    "Condition",
    "Conflict",
    "Copied",
    "Copies",
    "DuplicateEvent",
    "EncryptedTable",
    "EntityFormatError",
    "EntityKey",
    "EntityValueError",
    "Event",
    "Exists",
    "Fat",
    "FileCheckpoint",
    "Finding",
    "FunctionTask",
    "Grant",
    "GuideStyle",
    "Inconsistent",
    "Index",
    "IndexQuery",
    "IndexTask",
    "Key",
    "KeyFormatError",
    "KeyRange",
    "KeyRing",
    "KeyValueError",
    "Large",
    "Lease",
    "LeaseLost",
    "LeaseTaken",
    "LegacyCipher",
    "Listing",
    "Loaded",
    "LogRecord",
    "Lookup",
    "MessageTooLargeError",
    "Move",
    "NotOne",
    "NotUnique",
    "Outbox",
    "OutcomeUnknown",
    "PatternsError",
    "PeriodExpired",
    "Periods",
    "Policy",
    "Query",
    "QueryError",
    "Reads",
    "Recorded",
    "Ref",
    "Referred",
    "Rejected",
    "Saga",
    "SagaProgress",
    "SchemaError",
    "Series",
    "SideEffect",
    "Step",
    "Stored",
    "Stream",
    "Table",
    "Tail",
    "Task",
    "TaskMessage",
    "Tasks",
    "Ticks",
    "Transaction",
    "Unavailable",
    "Undecryptable",
    "Wide",
    "WrappingKey",
    "WrongVersion",
    "audit",
    "bucket",
    "choice",
    "column",
    "columns",
    "custom",
    "date",
    "decimal",
    "entity",
    "exact_ticks",
    "index",
    "integer",
    "lint",
    "literal",
    "new_uuid7",
    "octets",
    "partition",
    "reencrypt",
    "reverse_date",
    "reverse_ticks",
    "row",
    "text",
    "ticks",
    "unique",
    "upgrade",
    "user_sas",
    "uuid",
    "uuid7",
]

_MODULES = {
    "auditing.finding": "Check Finding",
    "auditing.run": "audit",
    "checkpoints": "Checkpoint FileCheckpoint",
    "effects.errors": "Rejected",
    "effects.tables": "EntityKey Stored",
    "encryption.cells": "Cipher",
    "encryption.errors": "Undecryptable",
    "encryption.keyring": "KeyRing WrappingKey",
    "encryption.legacy": "LegacyCipher",
    "encryption.table": "EncryptedTable reencrypt",
    "entities.bags": "Bag",
    "entities.columns": "Column column index partition row unique",
    "entities.conditions": "Condition QueryError",
    "entities.errors": "EntityFormatError EntityValueError SchemaError",
    "entities.indexes": "Index Listing",
    "entities.registry": "columns entity upgrade",
    "errors": "PatternsError",
    "indexes.errors": "Busy NotUnique",
    "keys.characters": "KeyFormatError KeyValueError",
    "keys.codecs": "Codec",
    "keys.components": "bucket choice custom date decimal exact_ticks integer literal octets reverse_date "
    "reverse_ticks text ticks uuid uuid7",
    "keys.guide_style": "GuideStyle",
    "keys.identifiers": "new_uuid7",
    "keys.key": "Key",
    "keys.key_range": "KeyRange",
    "keys.times": "Ticks",
    "leases.lease": "Lease",
    "leases.protocol": "Grant LeaseLost LeaseTaken",
    "outcomes.errors": "Absent Conflict Exists OutcomeUnknown Unavailable",
    "outcomes.retries": "Policy",
    "sas": "user_sas",
    "shapes.blob_log": "BlobLog",
    "shapes.copies": "Copies",
    "shapes.errors": "Inconsistent PeriodExpired Referred",
    "shapes.fat": "Fat",
    "shapes.large": "Large",
    "shapes.links": "Copied Ref",
    "shapes.lookup": "Lookup",
    "shapes.periods": "Periods",
    "shapes.protocols.large": "Loaded",
    "shapes.protocols.log_format": "LogRecord",
    "shapes.protocols.references": "BlobReference",
    "shapes.series": "Series",
    "shapes.tail": "Tail",
    "shapes.wide": "Wide",
    "streams.layout": "Event Recorded",
    "streams.protocol": "AppendTooLarge DuplicateEvent WrongVersion",
    "streams.stream": "Stream",
    "table.lint": "lint",
    "table.plan": "Reads",
    "table.query": "IndexQuery Query",
    "table.reading": "NotOne",
    "table.table": "Table",
    "table.transaction": "Transaction",
    "transactions.function_task": "FunctionTask",
    "transactions.indexing": "IndexTask",
    "transactions.messages": "MessageTooLargeError TaskMessage",
    "transactions.move": "Move",
    "transactions.outbox": "Outbox SideEffect",
    "transactions.saga": "SagaProgress Saga Step",
    "transactions.task": "Task",
    "transactions.tasks": "Tasks",
}
"""The modules that have the names; each is imported when one of its names is asked for."""
_PLACES = {name: module for module, names in _MODULES.items() for name in names.split()}


if not TYPE_CHECKING:  # A type checker would take any name for one of the package.

    def __getattr__(name: str) -> Any:
        """Import what is asked for."""
        if name not in _PLACES:
            raise AttributeError(f"module {__name__} has no attribute {name}")
        return getattr(import_module(f"lazulite_patterns.{_PLACES[name]}"), name)


def __dir__() -> list[str]:
    """Return the names, imported or not."""
    return sorted({*globals(), *__all__})
