"""The error codes of the Queue service alone, in the order of their names. Source: reference §30.

Importing the package `lazulite.queue` registers them, so that each of its modules can raise them.
"""

CODES: dict[str, tuple[int, str]] = {
    "MessageNotFound": (404, "The specified message does not exist."),
    "MessageTooLarge": (400, "The message exceeds the maximum allowed size."),
    "PopReceiptMismatch": (
        400,
        "The specified pop receipt did not match the pop receipt for a dequeued message.",
    ),
    "QueueAlreadyExists": (409, "The specified queue already exists."),
    "QueueBeingDeleted": (409, "The specified queue is being deleted."),
    "QueueDisabled": (409, "The specified queue has been disabled by the administrator."),
    "QueueNotEmpty": (409, "The specified queue is not empty."),
    "QueueNotFound": (404, "The specified queue does not exist."),
}
