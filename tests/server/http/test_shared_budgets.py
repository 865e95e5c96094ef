"""Servers of one process: what their connections hold together is bounded, whichever server they came to."""

from dataclasses import replace

from lazulite.server.admission.budgets import Budgets, budgets_of
from lazulite.server.http.connection import Connection
from lazulite.server.http.server_state import ServerState
from lazulite.server.limits import Limits
from tests.server.wire import Transport, Wire, settle


def another(wire: Wire, budgets: Budgets) -> ServerState:
    """Return a second server on the first one's budgets."""
    state = wire.state
    return ServerState(state.service, state.limits, state.new_request_id, state.clock, state.logs, budgets=budgets)


def connect(state: ServerState) -> Transport:
    connection = Connection(state, "http")
    transport = Transport(connection)
    connection.connection_made(transport)
    return transport


async def test_buffers_of_strangers_are_bounded_over_all_servers(wire: Wire) -> None:
    wire.limit(unauthenticated_bytes=200_000)
    second = another(wire, wire.state.budgets)
    clients = [connect(state) for state in (wire.state, second, wire.state, second, second)]
    for client in clients:
        await wire.send(b"GET /t HTTP/1.1\r\nX: " + b"y" * 59_000, client)
    assert [client.aborted for client in clients] == [True, True, False, False, False]
    assert wire.state.budgets.unauthenticated.held_bytes < 200_000


async def test_connections_are_bounded_over_all_servers(wire: Wire) -> None:
    limits = replace(wire.state.limits, connections=2)
    budgets = budgets_of(limits, wire.clock)
    first = ServerState(wire.service, limits, wire.state.new_request_id, wire.clock, (), budgets=budgets)
    second = ServerState(wire.service, limits, wire.state.new_request_id, wire.clock, (), budgets=budgets)
    clients = [connect(first), connect(second)]
    one_more = connect(second)
    await settle()
    assert b" 503 " in one_more.written
    assert not any(client.written for client in clients)
    assert budgets.connection_count == 3
    for client in (*clients, one_more):
        client.protocol.connection_lost(None)
        client.protocol.connection_lost(None)
    await settle()
    assert budgets.connection_count == 0
    assert not first.connections
    assert not second.connections


def test_the_budgets_have_the_bounds_of_the_limits() -> None:
    limits = Limits(buffered_bytes=10, unaccepted_body_bytes=20, unauthenticated_bytes=30)
    budgets = budgets_of(limits, lambda: 0.0)
    assert (budgets.bodies._bytes_max, budgets.unaccepted._bytes_max, budgets.unauthenticated._bytes_max) == (
        10,
        20,
        30,
    )
