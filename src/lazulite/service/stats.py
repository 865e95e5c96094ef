"""The service stats document, which only the secondary endpoint answers with."""

from email.utils import formatdate

from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.protocol.xml import document as xml


def write_service_stats(last_sync: int) -> bytes:
    """Return the document of a secondary that is live.

    Args:
        last_sync: up to when the primary's writes are all there, in ticks; with one store behind both endpoints: now.
    """
    moment = formatdate((last_sync - UNIX_EPOCH_TICKS) // TICKS_PER_SECOND, usegmt=True)
    replication = xml.element("GeoReplication", xml.leaf("Status", "live"), xml.leaf("LastSyncTime", moment))
    return xml.document(xml.element("StorageServiceStats", replication))
