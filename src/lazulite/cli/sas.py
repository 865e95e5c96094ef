"""`lazulite sas`: sign a shared access signature with an account's key. No server needs to run."""

import re
from argparse import Namespace
from collections.abc import Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas import AccountSas, MalformedSasError, format_sas_date, sign_account_sas
from lazulite.blob.auth.sas import sign_blob_sas
from lazulite.cli.account_stores import choose_account
from lazulite.cli.blob_sas import BLOB_PERMISSIONS, CONTAINER_PERMISSIONS, blob_sas, container_sas, url_of
from lazulite.cli.connection_string import endpoints_of
from lazulite.cli.errors import CommandError
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.resource_names import check_resource_name
from lazulite.queue.credentials import QueueSas, sign_queue_sas
from lazulite.settings.addresses import BLOB, SERVICES, TABLE
from lazulite.table.credentials import TableSas, sign_table_sas
from lazulite.table.names import check_table_name

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_DURATION = re.compile(r"([0-9]{1,6})([smhdw])")
_ACCOUNT_PERMISSIONS = "rwdxylacuptfi"
_TABLE_PERMISSIONS = "raud"
_QUEUE_PERMISSIONS = "raup"


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print a token, or with `--url` a URL that contains it."""
    account = choose_account(args, environ)
    try:
        token = sign(args, account, system_clock())
    except MalformedSasError as error:
        raise CommandError(error, 2) from None
    except IndexError:
        raise CommandError(f"account {account.name} has no key {args.key}") from None
    print(_url(args, account.name, token) if args.url else token)
    return 0


def _url(args: Namespace, account: str, token: str) -> str:
    """Return the URL of the resource that a token is for; of an account SAS, that of the first service that it has."""
    endpoints = endpoints_of(args, account)
    if args.kind == "account":
        service = next((name for name in SERVICES if name[0] in args.services), TABLE)
        return f"{endpoints[service]}/?{token}"
    if args.kind in ("container", "blob"):
        return url_of(args, endpoints[BLOB], token)
    return f"{endpoints[args.kind]}/{getattr(args, args.kind)}?{token}"


def sign(args: Namespace, account: Account, now: int) -> str:
    """Return the token that the flags describe.

    Args:
        args: the parsed flags.
        account: the account whose key signs.
        now: the start of durations, in ticks.

    Raises:
        MalformedSasError: the flags do not make a token.
        IndexError: the account has no such key.
    """
    common = {
        "expiry": resolve_time(args.expiry, now),
        "start": resolve_time(args.start, now),
        "ip": args.ip,
        "protocol": args.protocol,
    }
    if args.kind == "account":
        return sign_account_sas(account, _account_sas(args, common), args.key)
    if args.kind == "queue":
        return sign_queue_sas(account, _queue_sas(args, common), args.key)
    if args.kind == "container":
        permission = _permission(args, common, CONTAINER_PERMISSIONS)
        return sign_blob_sas(account, container_sas(args, permission, common), args.key)
    if args.kind == "blob":
        permission = _permission(args, common, BLOB_PERMISSIONS)
        return sign_blob_sas(account, blob_sas(args, permission, common), args.key)
    return sign_table_sas(account, _table_sas(args, common), args.key)


def _account_sas(args: Namespace, common: Mapping[str, str]) -> AccountSas:
    _check_letters("--services", args.services, "bqtf")
    _check_letters("--resource-types", args.resource_types, "sco")
    _check_letters("--permissions", args.permissions, _ACCOUNT_PERMISSIONS)
    if not common["expiry"]:
        raise MalformedSasError("pass --expiry")
    return AccountSas(services=args.services, resource_types=args.resource_types, permission=args.permissions, **common)


def _table_sas(args: Namespace, common: Mapping[str, str]) -> TableSas:
    try:
        check_table_name(args.table)
    except ServiceError:
        raise MalformedSasError(f"{args.table!r} is not a table name") from None
    return TableSas(
        table=args.table,
        permission=_permission(args, common, _TABLE_PERMISSIONS),
        policy_id=args.policy,
        start_partition=args.start_partition,
        start_row=args.start_row,
        end_partition=args.end_partition,
        end_row=args.end_row,
        **common,
    )


def _queue_sas(args: Namespace, common: Mapping[str, str]) -> QueueSas:
    try:
        check_resource_name(args.queue)
    except ServiceError:
        raise MalformedSasError(f"{args.queue!r} is not a queue name") from None
    permission = _permission(args, common, _QUEUE_PERMISSIONS)
    return QueueSas(queue=args.queue, permission=permission, policy_id=args.policy, **common)


def _permission(args: Namespace, common: Mapping[str, str], known: str) -> str:
    """Return the letters of a service SAS in the documented order."""
    _check_letters("--permissions", args.permissions, known)
    if not args.policy and not (args.permissions and common["expiry"]):
        raise MalformedSasError("pass --permissions and --expiry, or a stored --policy that has them")
    return "".join(letter for letter in known if letter in args.permissions)


def resolve_time(text: str, now: int) -> str:
    """Return the instant at which a duration from now, such as `30m`, ends. Return other texts unchanged."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return text
    seconds = int(match[1]) * _SECONDS[match[2]]
    try:
        return format_sas_date(now + seconds * TICKS_PER_SECOND)
    except (ValueError, OverflowError):
        raise MalformedSasError(f"{text} from now is after the year 9999") from None


def _check_letters(flag: str, given: str, known: str) -> None:
    if not set(given) <= set(known) or len(set(given)) < len(given):
        raise MalformedSasError(f"{flag} takes letters of {known}, each once")
