"""Every service that Lazulite has: the one list, from which operations, spaces and the rest follow."""

from lazulite.analytics.interval_counts import METRIC_COUNTS_SPACE
from lazulite.auth.accounts.engine_store import ACCOUNTS_SPACE
from lazulite.auth.delegation.store import DELEGATIONS_SPACE
from lazulite.blob.service import BLOB
from lazulite.engine.remote.codec import Codec
from lazulite.migration.journal import COPIES_SPACE
from lazulite.partitions.ledger import QUOTAS_SPACE
from lazulite.queue.service import QUEUE
from lazulite.records.spaces import COUNTERS_SPACE, Spaces
from lazulite.service.properties import PROPERTIES_SPACE
from lazulite.service.rejection import SERVICE_ERROR
from lazulite.table.service import TABLE

SERVICES = (TABLE, QUEUE, BLOB)

SHARED_SPACES = (
    COUNTERS_SPACE,
    PROPERTIES_SPACE,
    ACCOUNTS_SPACE,
    COPIES_SPACE,
    DELEGATIONS_SPACE,
    QUOTAS_SPACE,
    METRIC_COUNTS_SPACE,
)
"""The spaces that all services share."""

SPACES = Spaces(*SHARED_SPACES, *(space for service in SERVICES for space in service.spaces))
OPERATIONS = frozenset(name for service in SERVICES for name in service.operations)
CODEC = Codec(
    [each for service in SERVICES for each in service.commits],
    [SERVICE_ERROR, *(each for service in SERVICES for each in service.rejections)],
)
"""The encodings of the channel between a worker and its primary."""
