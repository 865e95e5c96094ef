from lazulite.protocol.clock import TICKS_PER_SECOND, UNIX_EPOCH_TICKS
from lazulite.service.account_operations import write_service_stats


def test_the_document() -> None:
    moment = UNIX_EPOCH_TICKS + 1_483_585_530 * TICKS_PER_SECOND + 9_999_999
    assert write_service_stats(moment) == (
        b'\xef\xbb\xbf<?xml version="1.0" encoding="utf-8"?><StorageServiceStats><GeoReplication>'
        b"<Status>live</Status><LastSyncTime>Thu, 05 Jan 2017 03:05:30 GMT</LastSyncTime>"
        b"</GeoReplication></StorageServiceStats>"
    )
