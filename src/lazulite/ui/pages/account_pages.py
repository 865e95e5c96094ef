"""The accounts: their names, the rotation of their keys, and their switches. Keys never get here."""

import asyncio
import secrets
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from lazulite.app.commands import REMOVE_DATA
from lazulite.auth.accounts.account import Account
from lazulite.auth.accounts.document import PUBLIC_KEY, AccountsError, AccountStore
from lazulite.auth.accounts.switches import REHYDRATE_SECONDS_MAX, RETENTION_DAYS_MAX, Switches
from lazulite.control.command import AccountArguments
from lazulite.ui.calls import Context, PageCall, PageError, Redirect, link

PATH = "/{account}/account"


@dataclass(frozen=True, slots=True)
class AccountRow:
    """An account, as it is listed."""

    name: str
    keys: int
    """How many it has."""
    has_public_key: bool
    switches: Switches


async def list_accounts(call: PageCall) -> Context:
    """Return the accounts in force."""
    directory = call.services.directory
    found = [each for each in map(directory.get, directory.names()) if each is not None]
    return {"rows": [_row(each) for each in found], "is_stored": call.services.accounts is not None}


async def show_account(call: PageCall) -> Context:
    """Return one account, without its keys."""
    account = call.services.directory.get(call.account)
    assert account is not None, "the path names one"
    endpoints = {name: call.backend.url(call.account, name) for name in call.backend.services}
    return {
        "row": _row(account),
        "is_changeable": call.services.accounts is not None and call.account not in call.services.settings.accounts,
        "days_max": RETENTION_DAYS_MAX,
        "seconds_max": REHYDRATE_SECONDS_MAX,
        "endpoints": endpoints,
        "connection_command": _connection_command(call, endpoints),
    }


def _connection_command(call: PageCall, endpoints: Mapping[str, str]) -> str:
    """Return the command that prints the connection string for this server and its ports."""
    settings = call.services.settings
    words = ["lazulite", "connection-string", "--account", call.account]
    if settings.database is not None:
        words += ["--engine", settings.database.name]  # Without the password, which a variable or a file has.
    elif settings.location is not None:
        words += ["--location", str(settings.location)]
    urls = {name: urlsplit(url) for name, url in endpoints.items()}
    for name, url in urls.items():
        words += [f"--{name}-port", str(url.port)]
    if any(url.scheme == "https" for url in urls.values()):
        words.append("--https")
    return shlex.join(words)


def _row(account: Account) -> AccountRow:
    return AccountRow(account.name, len(account.keys), PUBLIC_KEY in account.keys, account.switches)


async def add_account(call: PageCall) -> Redirect:
    """Add an account with two new keys, which the command line prints."""
    name = call.form.get("name", "")
    await _change(call, lambda store: store.add(name, secrets.token_bytes))
    text = f"Account {name} is there. “lazulite connection-string --account {name}” prints how clients reach it."
    return Redirect("/accounts", text)


async def rotate_key(call: PageCall) -> Redirect:
    """Replace one key of an account, which the form names twice."""
    name, number = call.account, call.form.get("key", "")
    if number not in ("1", "2"):
        raise PageError(HTTPStatus.BAD_REQUEST, "an account has key 1 and key 2")
    _confirmed(call)
    await _change(call, lambda store: store.rotate(name, int(number), secrets.token_bytes))
    text = f"Key {number} is new: clients with the old one are rejected. The other key is as it was."
    return Redirect(link(PATH, account=name), text)


async def set_switches(call: PageCall) -> Redirect:
    """Set the switches of an account."""
    form = call.form
    try:
        switches = Switches.read(
            {
                "versioning": "versioning" in form,
                "public_access": "public_access" in form,
                "container_retention_days": int(form.get("container_retention_days", "")),
                "rehydrate_after": int(form.get("rehydrate_after", "")),
            }
        )
    except ValueError:
        raise PageError(HTTPStatus.BAD_REQUEST, "the days and the seconds are numbers in their range") from None
    await _change(call, lambda store: store.switch(call.account, lambda _: switches))
    return Redirect(link(PATH, account=call.account), "The switches are set.")


async def revoke_keys(call: PageCall) -> Redirect:
    """Revoke the user delegation keys of an account."""
    now = int(time.time()) + 1
    await _change(call, lambda store: store.revoke_delegation_keys(call.account, now))
    return Redirect(link(PATH, account=call.account), "User delegation keys, and each SAS of theirs, are revoked.")


async def empty_account(call: PageCall) -> Redirect:
    """Delete all tables, queues and containers of an account."""
    _confirmed(call)
    await call.command(REMOVE_DATA, AccountArguments(call.account))
    return Redirect(link(PATH, account=call.account), f"Account {call.account} has no data now.")


def _confirmed(call: PageCall) -> None:
    """Reject a form whose text for confirmation is another one than the account. Raises `PageError`."""
    if call.form.get("confirm") != call.account:
        raise PageError(HTTPStatus.BAD_REQUEST, f"type {call.account} to confirm")


async def _change(call: PageCall, change: Callable[[AccountStore], object]) -> None:
    """Change the stored accounts. Raises `PageError`."""
    store = call.services.accounts
    if store is None:
        raise PageError(HTTPStatus.CONFLICT, "a server in memory keeps no accounts: give them by LAZULITE_ACCOUNTS")
    if call.parameters.get("account") in call.services.settings.accounts:
        raise PageError(HTTPStatus.CONFLICT, "this account comes from the environment; change it there")
    try:
        await asyncio.to_thread(change, store)
    except AccountsError as error:
        raise PageError(HTTPStatus.CONFLICT, str(error)) from None
    poll = call.services.poll_accounts
    call.services.directory.read_if_changed()
    if poll is not None:
        await poll()
