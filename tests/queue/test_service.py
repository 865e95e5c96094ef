"""The Queue service as a part of a process: bearer tokens, and the work that is due without a request."""

from collections.abc import Callable
from functools import partial
from unittest.mock import AsyncMock, Mock

import pytest

from lazulite.auth.accounts.account import DEVELOPMENT_ACCOUNT, AccountDirectory
from lazulite.auth.bearer.authentication import BearerAuthentication
from lazulite.auth.bearer.jwks import parse_jwks
from lazulite.auth.bearer.rules import BearerConventions, BearerRules
from lazulite.protocol.clock import unix_seconds
from lazulite.protocol.errors import ServiceError
from lazulite.protocol.message import Request, response_of
from lazulite.queue.call import Call
from lazulite.queue.catalog import Queue
from lazulite.queue.model.message import Message
from lazulite.queue.service import QUEUE, QueueService
from lazulite.service.definition import ServiceDependencies
from tests.tokens import ISSUER, jwks, signing_key

from .world import World, opened

KEY = signing_key("key", "ES256")
TABLE_ROLE = "Storage Table Data Contributor"


def authentication(world: World) -> Callable[[BearerConventions], BearerAuthentication]:
    """Accept the tokens of `KEY`."""
    keys = Mock()
    keys.current = AsyncMock(return_value=parse_jwks(jwks(KEY)))
    return partial(BearerAuthentication, rules=BearerRules(ISSUER), keys=keys, clock=lambda: world.now, allow_http=True)


async def test_roles_of_queues_and_of_tables() -> None:
    accounts = AccountDirectory({DEVELOPMENT_ACCOUNT.name: DEVELOPMENT_ACCOUNT})
    async with opened() as world:
        service = QueueService(
            ServiceDependencies(
                engine=world.engine, accounts=accounts, clock=lambda: world.now, bearer=authentication(world)
            )
        )

        async def ask(role: str, method: str = "PUT", query: str = "") -> tuple[int, str]:
            token = KEY.token(now=unix_seconds(world.now), roles=[role])
            headers = {"authorization": f"Bearer {token}", "x-ms-version": "2021-02-12", "host": "127.0.0.1"}
            request = Request(method, "/devstoreaccount1/jobs", query, headers=headers, scheme="https")
            response = await response_of(service, request)
            return response.status, response.error_code

        assert await ask(TABLE_ROLE) == (403, "AuthorizationPermissionMismatch")
        assert await ask("Storage Queue Data Reader") == (403, "AuthorizationPermissionMismatch")
        assert await ask("Storage Queue Data Contributor") == (201, "")
        assert await ask("Storage Queue Data Reader", "GET", "comp=metadata") == (200, "")
        assert await ask("Storage Queue Data Contributor", "GET", "comp=acl") == (403, "AuthorizationFailure")


async def test_maintenance_removes_expired_messages() -> None:
    async with opened() as world:
        dependencies = ServiceDependencies(
            engine=world.engine, accounts=AccountDirectory({}), clock=lambda: world.now, cache_ttl_seconds=1
        )
        context = QUEUE.make_context(dependencies)
        assert QUEUE.maintain_seconds > 0
        for name in ("one", "other"):
            await context.catalog.create("acct", name, ())
            queue = await context.catalog.require("acct", name)
            assert queue.shards > 1
            await context.messages.put(queue, b"a", 0, 5)
            await context.messages.put(queue, b"b", 0, None)
        dropped = await context.catalog.require("acct", "other")
        world.advance(20)
        await context.maintain()
        assert await context.messages.count(dropped) == 1
        await world.engine.drop(dropped.space)
        await context.maintain()


@pytest.mark.parametrize("clears", [1, 3])
async def test_an_operation_runs_again_each_time_that_its_queue_is_cleared(clears: int) -> None:
    async with opened() as world:
        dependencies = ServiceDependencies(
            engine=world.engine, accounts=AccountDirectory({}), clock=lambda: world.now, cache_ttl_seconds=1
        )
        context = QUEUE.make_context(dependencies)
        await context.catalog.create("acct", "jobs", ())
        call = Mock(context=context, address=Mock(account="acct"), resource=Mock(queue="jobs"))
        spaces = []

        async def run(queue: Queue) -> Message:
            spaces.append(queue.space)
            if len(spaces) <= clears:
                await context.catalog.clear("acct", "jobs")
            return await context.messages.put(queue, b"a", 0, None)

        await Call.with_queue(call, run)
        assert len(set(spaces)) == clears + 1
        assert await context.messages.count(await context.catalog.require("acct", "jobs")) == 1

        async def run_without(queue: Queue) -> Message:
            await context.catalog.delete("acct", "jobs")
            return await context.messages.put(queue, b"a", 0, None)

        with pytest.raises(ServiceError, match="QueueNotFound"):
            await Call.with_queue(call, run_without)
