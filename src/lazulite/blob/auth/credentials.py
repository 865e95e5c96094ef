"""The rules of credentials of the Blob service, as its other modules have them.

The string that a client signs under Shared Key: "Authorize with Shared Key" of the REST reference.
"""

from lazulite.auth.authenticator import ServiceCredentials
from lazulite.auth.canonicalize import string_to_sign
from lazulite.blob.auth.delegation_sas import parse_blob_delegation_sas
from lazulite.blob.auth.requirements import BLOB_BEARER
from lazulite.blob.auth.sas import BLOB_SAS_PARAMETERS, CONTAINER, parse_blob_sas, resource_fields
from lazulite.blob.resource import named_path
from lazulite.blob.versions import CHALLENGE_SINCE, SHARED_KEY_SINCE
from lazulite.protocol.message import Request
from lazulite.protocol.version import UNSTATED


def blob_string_to_sign(scheme: str, request: Request, account: str, path: str, comp: str | None) -> str:
    """Return the string-to-sign of a request: `Canonicalize` for blobs. The arguments are those of `string_to_sign`."""
    version = request.headers.get("x-ms-version") or UNSTATED
    known = "SharedKeyLite" if version < SHARED_KEY_SINCE else scheme
    return string_to_sign(known, request, account, path, comp)


BLOB_CREDENTIALS = ServiceCredentials(
    "b",
    blob_string_to_sign,
    CONTAINER,
    BLOB_SAS_PARAMETERS,
    parse_blob_sas,
    BLOB_BEARER,
    parse_delegation_sas=parse_blob_delegation_sas,
    challenged_since=CHALLENGE_SINCE,
    hides_from_unstated=True,
    sas_resource=resource_fields,
    respell=named_path,
)
