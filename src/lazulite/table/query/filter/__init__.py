"""The `$filter` language: text to tree, tree to key ranges, tree to a predicate."""

from lazulite.table.query.filter.ast import (
    And,
    BooleanProperty,
    Comparison,
    Constant,
    Node,
    Not,
    Operator,
    Or,
    QueryClass,
    query_class,
)
from lazulite.table.query.filter.key_ranges import plan
from lazulite.table.query.filter.parser import DEPTH_MAX, TERMS_MAX, TEXT_MAX, FilterSyntaxError, parse
from lazulite.table.query.filter.predicate import COMPARE, COMPARED_WITH_EMPTY, compile_predicate, readings_of

__all__ = [
    "COMPARE",
    "COMPARED_WITH_EMPTY",
    "DEPTH_MAX",
    "TERMS_MAX",
    "TEXT_MAX",
    "And",
    "BooleanProperty",
    "Comparison",
    "Constant",
    "FilterSyntaxError",
    "Node",
    "Not",
    "Operator",
    "Or",
    "QueryClass",
    "compile_predicate",
    "parse",
    "plan",
    "query_class",
    "readings_of",
]
