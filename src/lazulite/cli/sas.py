"""`lazulite sas`: shared access signatures, signed here and now with an account's key; no service need run."""

import re
from argparse import Namespace
from collections.abc import Mapping

from lazulite.auth.accounts.account import Account
from lazulite.auth.sas.account_sas import AccountSas, sign_account_sas
from lazulite.auth.sas.dates import format_sas_date
from lazulite.auth.sas.service_sas import ServiceSas, sign_table_sas
from lazulite.auth.sas.terms import MalformedSasError
from lazulite.cli.account_stores import choose_account
from lazulite.cli.connection_string import scheme_of, table_endpoint
from lazulite.cli.errors import Refusal
from lazulite.protocol.clock import TICKS_PER_SECOND, system_clock
from lazulite.protocol.errors import ServiceError
from lazulite.table.names import check_table_name

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_WHILE = re.compile(r"([0-9]{1,6})([smhdw])")
_ACCOUNT_PERMISSIONS = "rwdxylacuptfi"
_TABLE_PERMISSIONS = "raud"


def run(args: Namespace, environ: Mapping[str, str]) -> int:
    """Print a token, or the URL that holds it."""
    account = choose_account(args, environ)
    try:
        token = sign(args, account, system_clock())
    except MalformedSasError as error:
        raise Refusal(error, 2) from None
    except IndexError:
        raise Refusal(f"account {account.name} has no key {args.key}") from None
    endpoint = table_endpoint(account.name, args.table_host, args.table_port, scheme_of(args))
    resource = f"/{args.table}" if args.kind == "table" else "/"
    print(f"{endpoint}{resource}?{token}" if args.url else token)
    return 0


def sign(args: Namespace, account: Account, now: int) -> str:
    """Return the token that the flags describe.

    Args:
        args: the parsed flags.
        account: who signs.
        now: the time, in ticks, that durations count from.

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
    return sign_table_sas(account, _table_sas(args, common), args.key)


def _account_sas(args: Namespace, common: Mapping[str, str]) -> AccountSas:
    _check_letters("--services", args.services, "bqtf")
    _check_letters("--resource-types", args.resource_types, "sco")
    _check_letters("--permissions", args.permissions, _ACCOUNT_PERMISSIONS)
    if not common["expiry"]:
        raise MalformedSasError("pass --expiry")
    return AccountSas(services=args.services, resource_types=args.resource_types, permission=args.permissions, **common)


def _table_sas(args: Namespace, common: Mapping[str, str]) -> ServiceSas:
    try:
        check_table_name(args.table)
    except ServiceError:
        raise MalformedSasError(f"{args.table!r} is not a table name") from None
    _check_letters("--permissions", args.permissions, _TABLE_PERMISSIONS)
    if not args.policy and not (args.permissions and common["expiry"]):
        raise MalformedSasError("pass --permissions and --expiry, or a stored --policy that has them")
    return ServiceSas(
        table=args.table,
        permission="".join(letter for letter in _TABLE_PERMISSIONS if letter in args.permissions),
        policy_id=args.policy,
        start_partition=args.start_partition,
        start_row=args.start_row,
        end_partition=args.end_partition,
        end_row=args.end_row,
        **common,
    )


def resolve_time(text: str, now: int) -> str:
    """Return a while from now (`30m`) as the instant that it ends; any other text as it is."""
    match = _WHILE.fullmatch(text)
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
