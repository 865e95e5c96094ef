"""The lines that commands print about a whole store: a label in a column of its own, then the value."""

_LABEL_WIDTH = len("containers")


def labelled(label: str, value: object) -> str:
    """Return a line of a summary; numbers have separators of thousands."""
    text = f"{value:,}" if isinstance(value, int) else value
    return f"{label:<{_LABEL_WIDTH}} {text}"
