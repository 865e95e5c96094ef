"""The five classes of a query: how much of a table Azure would read for it.

Only conditions on keys that every match must meet count: the conjuncts of the whole filter that compare a key with a
string. What `or` and `not` say about keys narrows nothing on Azure (here it does, see key_ranges.py; the class is still
Azure's).

Source: the guidance of Microsoft's table design guide; reference §10.4.
"""

from typing import Literal

from lazulite.table.query.filter.ast import Comparison, Node, conjuncts

QueryClass = Literal["point", "row range", "partition scan", "partition range", "table scan"]

_ORDERED = frozenset({"gt", "ge", "lt", "le"})


def query_class(node: Node | None) -> QueryClass:
    """Return the class of a query with this filter; None is no filter."""
    compared: dict[str, set[str]] = {"PartitionKey": set(), "RowKey": set()}
    for term in conjuncts(node) if node is not None else ():
        if isinstance(term, Comparison) and term.property in compared and type(term.value) is str:
            compared[term.property].add(term.operator)
    partition, row = compared["PartitionKey"], compared["RowKey"]
    if "eq" in partition:
        return "point" if "eq" in row else "row range" if row & _ORDERED else "partition scan"
    return "partition range" if partition & _ORDERED else "table scan"
