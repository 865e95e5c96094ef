"""Set Blob Tier. Tiers are stored facts: only Archive changes what a blob can do. Source: reference §45.

A blob leaves Archive at once, or after the seconds that its account says. Until then its other tier is only stored
(`model.blob.Rehydration`), and nothing has to run when they have passed.
"""

from collections.abc import Mapping

from lazulite.blob.model.blob import ARCHIVE, Blob, BlobType, Rehydration
from lazulite.blob.model.rows import CURRENT
from lazulite.blob.model.transaction import Transaction
from lazulite.blob.requests.call import Call
from lazulite.blob.versions import (
    COLD_SINCE,
    PRIORITY_RAISE_SINCE,
    PRIORITY_SINCE,
    SMART_SINCE,
    TIER_OF_WRITES_SINCE,
    TIERS_SINCE,
)
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.errors import ServiceError, invalid_header, missing_header
from lazulite.protocol.message import Response

TIER = "x-ms-access-tier"
_PRIORITY = "x-ms-rehydrate-priority"
_BLOCK_TIERS = {"Hot": "", "Cool": "", "Archive": "", "Cold": COLD_SINCE, "Smart": SMART_SINCE}
"""Each with the first version that has it."""
_PREMIUM_GIB = {"P4": 32, "P6": 64, "P10": 128, "P15": 256, "P20": 512, "P30": 1024, "P40": 2048, "P50": 4096}
_PREMIUM_GIB |= {"P60": 8192, "P70": 16384, "P80": 32767}
_BLOCK_NAMES = {name.lower(): name for name in _BLOCK_TIERS}
_PREMIUM_NAMES = {name.lower(): name for name in _PREMIUM_GIB}
_GIB = 1024**3
_STANDARD, _HIGH = "Standard", "High"
_PRIORITIES = {name.lower(): name for name in (_STANDARD, _HIGH)}


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


def read_tier_of_write(headers: Mapping[str, str], type_: BlobType, version: str) -> str:
    """Return the tier that a request gives to the blob that it writes, as `read_tier`."""
    since = TIERS_SINCE if type_ is BlobType.PAGE else TIER_OF_WRITES_SINCE
    return read_tier(headers, type_, version) if version >= since else ""


def read_priority(headers: Mapping[str, str], version: str) -> str:
    """Return the priority with which an archived blob is to come back. Raises `InvalidHeaderValue`."""
    text = headers.get(_PRIORITY, _STANDARD) if version >= PRIORITY_SINCE else _STANDARD
    priority = _PRIORITIES.get(text.lower())
    if priority is None:
        raise invalid_header(_PRIORITY, text)
    return priority


def moved(blob: Blob, tier: str, priority: str, transaction: Transaction, seconds: int) -> Blob:
    """Return a blob in another tier, or on its way there from Archive.

    Args:
        blob: that no rehydration changes yet.
        tier: the other one.
        priority: of a rehydration.
        transaction: the change.
        seconds: how long a rehydration takes.
    """
    if blob.tier != ARCHIVE or tier == ARCHIVE or not seconds:
        return blob._replace(tier=tier, tier_changed=transaction.now, archive=None)
    return blob._replace(archive=Rehydration(tier, priority, transaction.present + seconds * TICKS_PER_SECOND))


async def set_tier(call: Call) -> Response:
    """Set the tier of a blob, snapshot or version. ETag and Last-Modified stay.

    *Unverified*: Azure may rehydrate no snapshots and versions.
    """
    headers, row = call.request.headers, call.row
    if not headers.get(TIER):
        raise missing_header(TIER)
    priority, seconds = read_priority(headers, call.version), call.switches.rehydrate_after

    def decide(transaction: Transaction) -> int:
        addressed = transaction.row_of(row)
        blob = transaction.require_blob(addressed)
        lease = call.preconditions.allow_write(blob, transaction.present)
        tier = read_tier(headers, blob.type, call.version)
        if blob.type is BlobType.PAGE:
            _check_premium(blob, tier)
        if blob.archive is None:
            changed = moved(blob, tier, priority, transaction, seconds)
        else:
            changed = _repeated(blob, blob.archive, tier, priority if call.version >= PRIORITY_RAISE_SINCE else "")
        transaction.put(addressed, changed._replace(lease=lease).to_bytes())
        return 202 if blob.tier == ARCHIVE and tier != ARCHIVE else 200

    return Response(await call.commit(await call.container(), decide, *([] if row == CURRENT else [row])))


def _repeated(blob: Blob, pending: Rehydration, tier: str, priority: str) -> Blob:
    """Return a blob whose rehydration was asked for once more: the priority can rise, and nothing else changes.

    Raises:
        ServiceError: `BlobBeingRehydrated`, the tier is another one.
    """
    if tier != pending.target:
        raise ServiceError("BlobBeingRehydrated")
    return blob._replace(archive=pending._replace(priority=_HIGH)) if priority == _HIGH else blob


def _check_premium(blob: Blob, tier: str) -> None:
    if _PREMIUM_GIB.get(blob.tier, 0) > _PREMIUM_GIB[tier]:
        raise ServiceError("CannotChangeToLowerTier")
    if blob.length > _PREMIUM_GIB[tier] * _GIB:
        raise ServiceError("BlobTierInadequateForContentLength")
