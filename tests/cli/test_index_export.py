"""`lazulite index export`: the printed module is read by Python, and by the pattern library."""

import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty, TableServiceClient
from lazulite_patterns import Table, audit

from lazulite.app.commands import INDEX_CREATE, INDEX_EXPORT, IndexDeclaration, TableArguments
from lazulite.cli.index_export import IndexDefinition, patterns_module
from lazulite.testing import server as storage_server

DAY = datetime(2026, 1, 2, tzinfo=UTC)
GUID = UUID("c9da6455-213d-42c9-9a79-3e9149a57833")


def module_of(text: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a module; its name stays known, as the library resolves annotations by it."""
    module = ModuleType("exported_indexes")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(text, module.__name__, "exec"), module.__dict__)
    return module


def test_the_library_keeps_and_uses_what_is_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    with storage_server() as storage, TableServiceClient.from_connection_string(storage.connection_string) as service:
        rows: list[Mapping[str, Any]] = [
            {
                "PartitionKey": "p",
                "RowKey": f"{number}",
                "City": f"city{number % 2}",
                "OrderTotal": number - 2,
                "Big": EntityProperty(number, EdmType.INT64),
                "Day": DAY,
                "Id": GUID,
                "class": b"\1",
            }
            for number in range(4)
        ]
        service.create_table("orders").submit_transaction([("create", dict(row)) for row in rows])
        for name, on, and_on, scope in (
            ("by_city", "City", "", "table"),
            ("total-in-city", "City", "OrderTotal", "partition"),
            ("Big", "Big", "Day", "table"),
            ("others", "Id", "class", "table"),
        ):
            of = IndexDeclaration("orders", name, on, and_on, scope)
            list(storage.control.stream(INDEX_CREATE, of))
        found: list[Any] = list(storage.control.stream(INDEX_EXPORT, TableArguments("orders")))
        module = module_of(patterns_module("orders", [IndexDefinition(**each) for each in found]), monkeypatch)
        with Table.open(storage.connection_string, module.Orders, table=module.TABLE) as orders:
            list(audit(orders, repair=True))
            added = module.Orders("p", "9", city="city1", order_total=-5, big=1, day=DAY, id=GUID, class_=b"\1")
            orders.insert(added)
            by_city = {each.row_key for each in orders.by(city="city1")}
            assert by_city == {"1", "3", "9"}
            total = orders.by(city="city1", order_total=-5, partition_key="p")
            assert [each.row_key for each in total] == ["9"]
            assert {each.row_key for each in orders.by(big=1, day=DAY)} == {"1", "9"}
            assert orders.by(id=GUID, class_=b"\1").count() == 5


def test_what_the_library_cannot_have_is_a_comment(monkeypatch: pytest.MonkeyPatch) -> None:
    indexes = [
        IndexDefinition("a", ["Price"], "table", {"Price": {"Edm.Double": 3, "Edm.Int32": 1}}),
        IndexDefinition("b", ["Timestamp"], "table", {"Timestamp": {"Edm.DateTime": 4}}),
        IndexDefinition("c", ["None_", "none"], "table", {"none": {"Edm.String": 2, "Edm.Int32": 2, "Edm.Guid": 1}}),
    ]
    text = patterns_module("$Metrics1", indexes)
    assert (
        "    # a: Price is of Edm.Double, which cannot be part of a key\n    # b: Timestamp is not a column\n" in text
    )
    assert "    # Some entities have Edm.Guid, Edm.Int32 here, and cannot be read.\n" in text
    module = module_of(text, monkeypatch)
    assert module.Metrics1("p", "r", none="x").none_ is None


def test_names_are_literals() -> None:
    text = patterns_module("T", [IndexDefinition("i", ["a\"'\\"], "table", {})])
    assert r"""column(name="a\"\'\\", default=None)""" in text
    compile(text, "module", "exec")
