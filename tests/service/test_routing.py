import pytest

from lazulite.app.registry import SERVICES
from lazulite.auth.grant import Requirement
from lazulite.service.routing import NO_BODY, Route, Routes, component_of

from .note_read import NoteCall, NoteRead

READ = Requirement("o", ("r",))


def route(method: str = "GET", *headers: str) -> Route[NoteCall]:
    return Route("note", method, "", "Operation", NoteRead, requires=READ, headers=frozenset(headers))


@pytest.mark.parametrize(
    ("parameters", "component"),
    [
        ({}, ""),
        ({"comp": "ACL"}, "acl"),
        ({"restype": "Service", "comp": "stats"}, "service/stats"),
        ({"restype": "container"}, "container/"),
    ],
)
def test_components(parameters: dict[str, str], component: str) -> None:
    assert component_of(parameters) == component


@pytest.mark.parametrize("headers", [(), ("if-match",), ("if-match", "range")])
def test_two_routes_for_the_same_requests_are_rejected(headers: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="two routes"):
        Routes(route("GET", *headers), route("GET", *headers))
    Routes(route(), route("GET", "if-match"), route("GET", "if-match", "range"), route("PUT"))


def test_only_methods_with_a_body_have_a_bound() -> None:
    rows = [row for service in SERVICES for rows in service.routes._rows.values() for row in rows]
    assert rows
    assert {row.method for row in rows if row.body != NO_BODY} <= {"POST", "PUT", "MERGE", "PATCH"}
