"""The one root of the errors of this library."""


class PatternsError(Exception):
    """What goes wrong in a pattern. Every error that the library raises for its callers is one.

    Some are built-in errors, too: what a caller gave wrong is a ValueError, a class declared wrong a TypeError.
    """
