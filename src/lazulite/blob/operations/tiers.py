"""Set Blob Tier. Tiers are stored facts: only Archive changes what a blob can do. Source: reference §45."""

from collections.abc import Mapping
from dataclasses import replace

from lazulite.blob.call import Call
from lazulite.blob.model.blob import Blob, BlobType
from lazulite.blob.model.draft import Draft
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.presence import present
from lazulite.blob.versions import COLD_SINCE, SMART_SINCE
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.header_errors import invalid_header, missing_header
from lazulite.protocol.message import Response

TIER = "x-ms-access-tier"
ARCHIVE = "Archive"
_BLOCK_TIERS = {"Hot": "", "Cool": "", "Archive": "", "Cold": COLD_SINCE, "Smart": SMART_SINCE}
"""Each with the first version that has it."""
_PREMIUM_GIB = {"P4": 32, "P6": 64, "P10": 128, "P15": 256, "P20": 512, "P30": 1024, "P40": 2048, "P50": 4096}
_PREMIUM_GIB |= {"P60": 8192, "P70": 16384, "P80": 32767}
_BLOCK_NAMES = {name.lower(): name for name in _BLOCK_TIERS}
_PREMIUM_NAMES = {name.lower(): name for name in _PREMIUM_GIB}
_GIB = 1024**3
_PRIORITIES = ("Standard", "High")


def read_tier(headers: Mapping[str, str], type_: BlobType, version: str) -> str:
    """Return the tier that a request asks for; "" for none.

    Raises:
        ServiceError: `InvalidHeaderValue`, `InvalidBlobTier`, `AccessTierNotSupportedForBlobType`.
    """
    text = headers.get(TIER)
    if text is None:
        return ""
    if type_ is BlobType.APPEND:
        raise ServiceError("AccessTierNotSupportedForBlobType")
    tier = (_PREMIUM_NAMES if type_ is BlobType.PAGE else _BLOCK_NAMES).get(text.lower())
    if tier is None or _BLOCK_TIERS.get(tier, "") > version:
        raise ServiceError("InvalidBlobTier") if type_ is BlobType.PAGE else invalid_header(TIER, text)
    return tier


async def set_tier(call: Call) -> Response:
    """Set the tier of a blob, snapshot or version. An archived one comes back at once.

    ETag and Last-Modified stay.
    """
    headers, row = call.request.headers, call.row
    if not headers.get(TIER):
        raise missing_header(TIER)
    priority = headers.get("x-ms-rehydrate-priority", _PRIORITIES[0])
    if priority not in _PRIORITIES:
        raise invalid_header("x-ms-rehydrate-priority", priority)
    last: list[int] = []

    def decide(draft: Draft) -> None:
        addressed = draft.row_of(row)
        blob = present(draft, addressed)
        lease = call.preconditions.allow_write(blob, draft.present)
        tier = read_tier(headers, blob.type, call.version)
        if blob.type is BlobType.PAGE:
            _check_premium(blob, tier)
        last[:] = [202 if blob.tier == ARCHIVE and tier != ARCHIVE else 200]
        draft.put(addressed, replace(blob, lease=lease, tier=tier, tier_changed=draft.now, archive=None).to_bytes())

    await call.commit(await call.container(), decide, *([] if row == CURRENT else [row]))
    return Response(last[0])


def _check_premium(blob: Blob, tier: str) -> None:
    if _PREMIUM_GIB.get(blob.tier, 0) > _PREMIUM_GIB[tier]:
        raise ServiceError("CannotChangeToLowerTier")
    if blob.length > _PREMIUM_GIB[tier] * _GIB:
        raise ServiceError("BlobTierInadequateForContentLength")
