"""The error codes of the Table service alone, in the order of their names (reference §16).

Importing the package `lazulite.table` registers them, so that each of its modules can raise them.
"""

from lazulite.protocol import errors

CODES: dict[str, tuple[int, str]] = {
    "AtomFormatNotSupported": (415, "Atom format is not supported."),
    "CommandsInBatchActOnDifferentPartitions": (
        400,
        "All commands in a batch must operate on same entity group.",
    ),
    "DuplicatePropertiesSpecified": (400, "A property is specified more than one time."),
    "EntityAlreadyExists": (409, "The specified entity already exists."),
    "EntityTooLarge": (400, "The entity is larger than the maximum allowed size (1MB)."),
    "InvalidDuplicateRow": (
        400,
        "The batch request contains multiple changes with same row key. An entity can appear only once in a batch "
        "request.",
    ),
    "InvalidValueType": (400, "The value specified is invalid."),
    "JsonFormatNotSupported": (415, "JSON format is not supported."),
    "JsonVerboseFormatNotSupported": (415, "JSON verbose format is not supported."),
    "KeyValueTooLarge": (400, "The key value exceeds the maximum allowed size."),
    "MediaTypeNotSupported": (415, "None of the provided media types are supported"),
    "PrimaryKeyPropertyIsInvalidType": (400, "The primary key property is of an invalid type."),
    "PropertiesNeedValue": (400, "The values are not specified for all properties in the entity."),
    "PropertyNameInvalid": (400, "The property name is invalid."),
    "PropertyNameTooLong": (400, "The property name exceeds the maximum allowed length (255)."),
    "PropertyValueTooLarge": (
        400,
        "The property value exceeds the maximum allowed size (64KB). If the property value is a string, it is UTF-16 "
        "encoded and the maximum number of characters should be 32K or less.",
    ),
    "TableAlreadyExists": (409, "The table specified already exists."),
    "TableBeingDeleted": (409, "The specified table is being deleted."),
    "TableNotFound": (404, "The table specified does not exist."),
    "TooManyProperties": (
        400,
        "The entity contains more properties than allowed. Each entity can include up to 252 properties to store "
        "data. Each entity also has 3 system properties.",
    ),
    "UpdateConditionNotSatisfied": (
        412,
        "The update condition specified in the request was not satisfied.",
    ),
    "XMethodIncorrectCount": (400, "The X-HTTP-Method header was specified more than one time."),
    "XMethodIncorrectValue": (400, "The X-HTTP-Method header has an incorrect value."),
    "XMethodNotUsingPost": (400, "The X-HTTP-Method header must be used with the POST method."),
}

MESSAGES = {"MissingContentLengthHeader": "The Content-Length header was not specified."}
"""The documented texts of shared codes, where the catalogue has those that queues and blobs were recorded with."""

MESSAGE_AS_REASON = errors.MESSAGE_AS_REASON | {
    "AtomFormatNotSupported",
    "JsonFormatNotSupported",
    "JsonVerboseFormatNotSupported",
    "MediaTypeNotSupported",
}
"""Codes whose message is the reason phrase, too: those of all services, and the formats that the Table service rejects.
Recorded is `MediaTypeNotSupported`; the others are *unverified*."""
