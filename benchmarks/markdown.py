"""Tables and numbers in Markdown."""

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> list[str]:
    """Return a Markdown table whose first `left` columns are texts, between empty lines; nothing without rows."""
    rule = ["---"] * left + ["---:"] * (len(head) - left)
    cells = [head, rule, *rows]
    return ["", *("| " + " | ".join(each) + " |" for each in cells), ""] if len(cells) > 2 else []


def spell(value: float | None, form: str) -> str:
    """Return a number, or a dash where there is none."""
    return "–" if value is None else format(value, form)
