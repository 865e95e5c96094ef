"""The rules of credentials of the Blob service, as its other modules have them."""

from lazulite.auth.service_credentials import ServiceCredentials
from lazulite.blob.auth.addressed import CONTAINER, resource_fields
from lazulite.blob.auth.canonicalize import blob_string_to_sign
from lazulite.blob.auth.delegation_sas import parse_blob_delegation_sas
from lazulite.blob.auth.roles import BLOB_BEARER
from lazulite.blob.auth.sas import BLOB_SAS_PARAMETERS, parse_blob_sas
from lazulite.blob.auth.versions import CHALLENGE_SINCE
from lazulite.blob.resource import named_path

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
