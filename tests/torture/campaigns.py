"""All campaigns by name."""

from .abuse.campaign import ABUSE
from .blob.backups import BLOB_BACKUPS
from .blob.blobs_on_postgres import BLOBS_ON_POSTGRES
from .blob.campaign import LEASES
from .blob.crash import BLOBS
from .blob.damage import DAMAGE, DAMAGE_ON_POSTGRES
from .blob.on_postgres import LEASES_ON_POSTGRES
from .blob.power import BLOB_POWER
from .campaign import Campaign
from .citus.campaign import CITUS
from .clock import CLOCK
from .crash import CRASH
from .faults.campaign import FAULTS
from .linearizability.campaign import LINEARIZABILITY
from .linearizability.on_postgres import LINEARIZABILITY_ON_POSTGRES
from .linearizability.on_workers import LINEARIZABILITY_ON_WORKERS
from .power.campaign import POWER
from .queue.campaign import QUEUE
from .queue.failover import QUEUE_FAILOVER
from .queue.on_postgres import QUEUE_ON_POSTGRES
from .queue.power import QUEUE_POWER
from .rolling.campaign import ROLLING

CAMPAIGNS: dict[str, Campaign] = {
    "crash": CRASH,
    "power": POWER,
    "linearizability": LINEARIZABILITY,
    "linearizability-postgres": LINEARIZABILITY_ON_POSTGRES,
    "linearizability-workers": LINEARIZABILITY_ON_WORKERS,
    "faults": FAULTS,
    "clock": CLOCK,
    "abuse": ABUSE,
    "rolling": ROLLING,
    "queue": QUEUE,
    "queue-postgres": QUEUE_ON_POSTGRES,
    "queue-failover": QUEUE_FAILOVER,
    "queue-power": QUEUE_POWER,
    "leases": LEASES,
    "leases-postgres": LEASES_ON_POSTGRES,
    "blobs": BLOBS,
    "citus": CITUS,
    "blobs-postgres": BLOBS_ON_POSTGRES,
    "blob-power": BLOB_POWER,
    "blob-backups": BLOB_BACKUPS,
    "damage": DAMAGE,
    "damage-postgres": DAMAGE_ON_POSTGRES,
}
