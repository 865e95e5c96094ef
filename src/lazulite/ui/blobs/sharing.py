"""URLs with a SAS: signed here, shown once, kept nowhere."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import quote

from lazulite.auth.sas import MalformedSasError, write_query
from lazulite.blob.auth.sas import BlobSas, sign_blob_sas
from lazulite.ui.calls import PageCall, PageError

VERSION = "2021-12-02"
PERMISSIONS: Mapping[str, str] = {
    "r": "read",
    "a": "add blocks to append blobs",
    "c": "create",
    "w": "write",
    "d": "delete",
    "x": "delete versions",
    "y": "delete permanently",
    "l": "list",
    "t": "tags",
    "f": "find by tags",
}
"""The letters, in the order in which tokens have them -> what they permit."""
_OF_BLOB, _OF_PAST = "racwdxyt", "rdxyt"
_FORMAT = "%Y-%m-%dT%H:%M"


class Shared(NamedTuple):
    """What a URL is for."""

    container: str
    blob: str = ""
    """"" for the container with all of its blobs."""
    snapshot: str = ""
    version: str = ""

    @property
    def kind(self) -> str:
        """What the token calls it."""
        if not self.blob:
            return "c"
        return "bs" if self.snapshot else "bv" if self.version else "b"

    @property
    def permissions(self) -> Mapping[str, str]:
        """What a token can permit for it."""
        letters = {"c": "".join(PERMISSIONS), "b": _OF_BLOB}.get(self.kind, _OF_PAST)
        return {letter: text for letter, text in PERMISSIONS.items() if letter in letters}


def default_expiry() -> str:
    """Return tomorrow, as an input of a form has it, in UTC."""
    return (datetime.now(UTC) + timedelta(days=1)).strftime(_FORMAT)


def shared_url(call: PageCall, shared: Shared, form: Mapping[str, str], permissions: Sequence[str]) -> str:
    """Return a URL with a signed token.

    Args:
        call: the action, whose account signs.
        shared: what the URL is for.
        form: `start` and `expiry` in UTC, `ip`, `policy`; "" for what the token does not state.
        permissions: the letters.

    Raises:
        PageError: the fields do not make a token.
    """
    account = call.services.directory.get(call.account)
    if account is None or not account.signers:
        raise PageError(404, f"there is no account {call.account}")
    sas = BlobSas(
        kind=shared.kind,
        container=shared.container,
        blob=shared.blob,
        time=shared.snapshot or shared.version,
        permission="".join(letter for letter in shared.permissions if letter in permissions),
        start=_date(form.get("start", "")),
        expiry=_date(form.get("expiry", "")),
        ip=form.get("ip", "").strip(),
        protocol="",
        policy_id=form.get("policy", ""),
        version=VERSION,
    )
    try:
        token = sign_blob_sas(account, sas)
    except MalformedSasError as error:
        raise PageError(400, f"no URL was made: {error}") from None
    path = quote(f"{shared.container}/{shared.blob}" if shared.blob else shared.container, safe="/$")
    selected = write_query({"snapshot": shared.snapshot, "versionid": shared.version})
    return f"{call.service('blob').url}/{path}?{'&'.join(filter(None, (selected, token)))}"


def _date(text: str) -> str:
    if not text:
        return ""
    try:
        return datetime.fromisoformat(text.removesuffix("Z")).strftime(f"{_FORMAT}:%SZ")
    except ValueError:
        raise PageError(400, "a time is written like 2026-11-28T10:00, in UTC") from None
