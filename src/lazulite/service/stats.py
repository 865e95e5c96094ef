"""The service stats document, which only the secondary endpoint answers with."""

from lazulite.protocol.clock import format_http_date
from lazulite.protocol.xml import document as xml


def write_service_stats(last_sync: int) -> bytes:
    """Return the document of a secondary that is live.

    Args:
        last_sync: up to when the primary's writes are all there, in ticks; with one store behind both endpoints: now.
    """
    moment = format_http_date(last_sync)
    replication = xml.element("GeoReplication", xml.leaf("Status", "live"), xml.leaf("LastSyncTime", moment))
    return xml.document(xml.element("StorageServiceStats", replication))
