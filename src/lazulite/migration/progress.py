"""The progress of a pass over a store, for display."""

from dataclasses import dataclass


@dataclass(slots=True)
class Progress:
    """The numbers of rows and parts done, and their totals."""

    verb: str
    """The past participle for messages: `copied` or `compared`."""
    rows: int = 0
    """Entities, messages and rows of blobs."""
    rows_total: int | None = None
    """None: unknown."""
    parts: int = 0
    """Tables, queues and containers."""
    parts_done: int = 0

    @property
    def done(self) -> int:
        """What the rate is of."""
        return self.rows

    @property
    def of_total(self) -> tuple[int, int]:
        """How much is done of what: of the rows if their total is known, else of the parts."""
        return (self.parts_done, self.parts) if self.rows_total is None else (self.rows, self.rows_total)

    @property
    def counts(self) -> dict[str, int | None]:
        """What machines are told."""
        return {
            "rows": self.rows,
            "rows_total": self.rows_total,
            "parts": self.parts_done,
            "parts_total": self.parts,
        }

    def describe(self, rate: float) -> str:
        """Return the progress in words. `rate` is in rows a second."""
        of = "" if self.rows_total is None else f" of {self.rows_total:,}"
        parts = f"{self.parts_done:,} of {self.parts:,} parts"
        return f"{self.verb} {self.rows:,}{of} rows ({rate:,.0f}/s), {parts}"
