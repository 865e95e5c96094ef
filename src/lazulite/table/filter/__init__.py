"""The `$filter` language: text to tree, tree to key ranges, tree to a predicate."""

from lazulite.table.filter.lexer import FilterSyntaxError
from lazulite.table.filter.parser import DEPTH_MAX, TERMS_MAX, TEXT_MAX, parse
from lazulite.table.filter.predicate import COMPARE, compile_predicate, readings_of
from lazulite.table.filter.query_class import QueryClass, query_class
from lazulite.table.filter.ranges import plan
from lazulite.table.filter.tree import And, BooleanProperty, Comparison, Constant, Node, Not, Operator, Or

__all__ = [
    "COMPARE",
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
