"""Requests with plans and without: the same responses, field by field, and the same facts in the logs."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple
from urllib.parse import quote

import pytest

from lazulite.auth.accounts.account import AccountDirectory
from lazulite.auth.accounts.document import StoredAccount
from lazulite.auth.sas import AccountSas, sign_account_sas
from lazulite.engine.contract import Clock, Engine
from lazulite.protocol.clock import TICKS_PER_SECOND
from lazulite.protocol.fields import Fields
from lazulite.protocol.message import Request, response_of
from lazulite.queue.service import QueueService
from lazulite.service.definition import ServiceDependencies
from tests.fuzz.memory import MemoryEngine

NAME = "acct"
NOW = 13_569_465_600 * TICKS_PER_SECOND
"""2031-01-01, in ticks."""
HEAD = {"host": "h", "accept": "*/*", "content-type": "application/xml"}
VERSIONS = ("2021-02-12", "2011-08-18", "2009-09-19")
DECLARED = b"<?xml version='1.0' encoding='utf-8'?>\n"
BODIES = (
    b"<QueueMessage><MessageText>a</MessageText></QueueMessage>",
    DECLARED + b"<QueueMessage><MessageText>a &amp;lt; b</MessageText></QueueMessage>",
    "<QueueMessage><MessageText>é</MessageText></QueueMessage>".encode(),
    b"<QueueMessage><MessageText /></QueueMessage>",
    b"<QueueMessage></QueueMessage>",
    b"<QueueMessage><MessageText>%b</MessageText></QueueMessage>" % (b"x" * 9000),
)
VISIBILITIES = (
    *["&visibilitytimeout=0"] * 6,
    "&visibilitytimeout=5",
    "",
    "&visibilitytimeout=x",
    f"&visibilitytimeout={8 * 86_400}",
)
PUTS = ("", "", "", "visibilitytimeout=5", "messagettl=-1", "visibilitytimeout=9&messagettl=8", "messagettl=x")
GETS = ("", "", "", "numofmessages=32", "numofmessages=33", "visibilitytimeout=1", "peekonly=true")
FOUND = re.compile(rb"<MessageId>(.+?)</MessageId>.*?<PopReceipt>(.+?)</PopReceipt>")


class Answer(NamedTuple):
    """What a client and the logs see of a response."""

    status: int
    fields: tuple[tuple[str, str], ...]
    body: bytes
    record: str


class World:
    """The Queue service. Two of them have the same ids."""

    def __init__(self, open_engine: Callable[[Clock], Engine] = MemoryEngine, random: Random | None = None) -> None:
        self.now = NOW
        accounts = AccountDirectory({})
        accounts.replace({NAME: StoredAccount((b"first", b"second"))})
        account = accounts.get(NAME)
        assert account is not None
        self.signer = account.signers[0]
        self.sas = sign_account_sas(
            account,
            AccountSas(
                services="q", resource_types="sco", permission="rwdlacup", start="2030-12-31", expiry="2031-01-09"
            ),
        )
        self.engine = open_engine(lambda: self.now)
        self.service = QueueService(
            ServiceDependencies(
                engine=self.engine, accounts=accounts, clock=lambda: self.now, random=random or Random(1)
            )
        )
        self.planned: Counter[str] = Counter()

    async def ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", version: str = VERSIONS[0], *, steady: bool
    ) -> Answer:
        """Send a request; a plan can be found only if it is `steady`."""
        headers = {**HEAD, "x-ms-version": version, "content-length": str(len(body))}
        whole = "&".join(filter(None, (query, self.sas)))
        request = Request(method, f"/{NAME}/{path}", whole, Fields.of(headers) if steady else headers, body, id="id")
        hits = self.service.plans.hits
        response = await response_of(self.service, request)
        self.planned[method] += self.service.plans.hits - hits
        record = f"{request.record} {request.authenticated}"
        return Answer(response.status, tuple(response.fields()), response.body, record)


class Both:
    """A world with plans and one without, to which the same requests go."""

    def __init__(self, *worlds: World) -> None:
        self.worlds = worlds or (World(), World())

    @property
    def planned(self) -> Counter[str]:
        return self.worlds[0].planned

    async def ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", version: str = VERSIONS[0]
    ) -> Answer:
        planned, other = [
            await world.ask(method, path, query, body, version, steady=world is self.worlds[0]) for world in self.worlds
        ]
        assert planned == other, (method, path, query, body)
        return planned

    async def message(self) -> tuple[str, str]:
        """Put a message and get it at a time of its own; return its id and its receipt."""
        for world in self.worlds:
            world.now += 1
        await self.ask("POST", "jobs/messages", "", BODIES[0])
        found = FOUND.search((await self.ask("GET", "jobs/messages")).body)
        assert found is not None
        return found[1].decode(), found[2].decode()


@pytest.fixture(name="both")
async def _both() -> Both:
    both = Both()
    assert (await both.ask("PUT", "jobs")).status == 201
    return both


def _spellings(random: Random, receipt: str, others: Sequence[str]) -> str:
    """Return a query with a receipt, mostly as clients write it."""
    encoded = quote(receipt, safe="")
    usual = [f"popreceipt={encoded}"] * 12 + [f"popreceipt={receipt}", f"timeout=30&popreceipt={encoded}"]
    odd = [
        "", "popreceipt=", "popreceipt=x", "popreceipt=%FF", f"PopReceipt={encoded}",
        f"popreceipt={encoded}&popreceipt=x", f"popreceipt=x&popreceipt={encoded}", f"%70opreceipt={encoded}",
        f"popreceipt={encoded}&%70opreceipt=x",
        *(f"popreceipt={quote(other, safe='')}" for other in others),
    ]  # fmt: skip
    return random.choice(usual + odd)


async def run(both: Both, seeds: int) -> None:
    """Send random requests to both."""
    for seed in range(seeds):
        random, held = Random(seed), list[tuple[str, str]]()
        for _ in range(150):
            version = random.choice((*[VERSIONS[0]] * 5, *VERSIONS))
            match random.choice(["put"] * 4 + ["get"] * 4 + ["delete"] * 6 + ["rest"]):
                case "put":
                    await both.ask("POST", "jobs/messages", random.choice(PUTS), random.choice(BODIES), version)
                case "get":
                    answer = await both.ask("GET", "jobs/messages", random.choice(GETS), b"", version)
                    held += [(one.decode(), other.decode()) for one, other in FOUND.findall(answer.body)]
                case "delete":
                    message, receipt = held.pop(random.randrange(len(held))) if held else ("x" * 36, "x")
                    query = _spellings(random, receipt, [each[1] for each in held[:1]])
                    method = random.choice(["DELETE"] * 3 + ["PUT"] * 3)
                    visibility = "" if method == "DELETE" else random.choice(VISIBILITIES)
                    body = b"" if method == "DELETE" else random.choice((b"", *BODIES))
                    await both.ask(method, f"jobs/messages/{message}", query + visibility, body, version)
                case "rest":
                    change = random.choice([("DELETE", "jobs/messages"), ("DELETE", "jobs"), ("PUT", "jobs")])
                    await both.ask(*change)
                    if change == ("DELETE", "jobs"):
                        await both.ask("POST", "jobs/messages", "", BODIES[0])
                        await both.ask("PUT", "jobs")
            passed = random.choice([0, TICKS_PER_SECOND // 1000, 40 * TICKS_PER_SECOND])
            for world in both.worlds:
                world.now += passed


async def test_plans_change_no_response(both: Both) -> None:
    await run(both, 6)
    assert min(both.planned[method] for method in ("POST", "GET", "DELETE", "PUT")) > 20, both.planned


async def test_the_receipt_of_a_planned_delete_counts(both: Both) -> None:
    for number in range(4):
        message, receipt = await both.message()
        other, _ = await both.message()
        query = f"popreceipt={quote(receipt, safe='')}"
        assert (await both.ask("DELETE", f"jobs/messages/{other}", query)).status == 404
        assert (await both.ask("DELETE", f"jobs/messages/{message}", query)).status == 204
        assert (await both.ask("DELETE", f"jobs/messages/{message}", query)).status == 404
        assert (await both.ask("DELETE", f"jobs/messages/{message}")).status == 400
        assert (both.planned["DELETE"] > 0) is (number > 0), "the second success makes the plan"


async def test_the_receipt_and_the_text_of_a_planned_update_count(both: Both) -> None:
    for number in range(4):
        message, receipt = await both.message()
        other, _ = await both.message()
        query = f"popreceipt={quote(receipt, safe='')}&visibilitytimeout=0"
        body = BODIES[0].replace(b">a<", b">%d<" % number)
        assert (await both.ask("PUT", f"jobs/messages/{other}", query, body)).status == 404
        assert (await both.ask("PUT", f"jobs/messages/{message}", query, body)).status == 204
        assert (await both.ask("PUT", f"jobs/messages/{message}", query, body)).status == 404
        assert b">%d</MessageText>" % number in (await both.ask("GET", "jobs/messages", "numofmessages=32")).body
        assert (both.planned["PUT"] > 0) is (number > 0), "the second success makes the plan"


async def test_messages_that_are_returned_are_counted_for_the_log(both: Both) -> None:
    for _ in range(4):
        await both.message()
        for parameters in ("peekonly=true", ""):
            await both.ask("POST", "jobs/messages", "", BODIES[0])
            record = (await both.ask("GET", "jobs/messages", parameters)).record
            assert "rows_scanned=1, rows_returned=1" in record
    assert both.planned["GET"] > 0


@pytest.mark.parametrize("again", ["popreceipt", "PopReceipt", "%70opreceipt"])
async def test_a_receipt_that_comes_twice_has_no_plan(both: Both, again: str) -> None:
    for _ in range(4):
        message, receipt = await both.message()
        query = f"popreceipt={quote(receipt, safe='')}&{again}=x"
        assert (await both.ask("DELETE", f"jobs/messages/{message}", query)).status == 204
    assert both.planned["DELETE"] == 0
