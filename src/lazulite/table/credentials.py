"""The rules of credentials of the Table service (reference §13, §14)."""

from lazulite.auth.service_credentials import ServiceCredentials
from lazulite.table.canonicalize import table_string_to_sign
from lazulite.table.roles import TABLE_BEARER
from lazulite.table.sas import TABLE_SAS_PARAMETERS, parse_table_sas

TABLE_CREDENTIALS = ServiceCredentials(
    "t", table_string_to_sign, "tn", TABLE_SAS_PARAMETERS, parse_table_sas, TABLE_BEARER
)
