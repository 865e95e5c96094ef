"""How far a copy has come: a small file, replaced as a whole, so that a killed copy is resumed.

Invariant: what the file says is done is done in the target. It holds names and continuation tokens, and no secret.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_VERSION = 1


class CopyError(Exception):
    """A copy cannot go on. The text is one line for people, without secrets."""


@dataclass(slots=True)
class Journal:
    """The journal of one copy.

    Attributes:
        path: of the file; None: nothing is kept, and nothing can be resumed.
        pair: names the source and the target.
        done: the resources that are copied, each as `kind/name`.
        current: the resource that is under way; "" for none.
        following: what leads to the next page of it.
        resumed: whether it goes on from an earlier copy.
    """

    path: Path | None
    pair: str
    done: list[str] = field(default_factory=list)
    current: str = ""
    following: Mapping[str, str] = field(default_factory=dict)
    resumed: bool = False

    @classmethod
    def open(cls, path: Path | None, pair: str) -> "Journal":
        """Return the journal of a file, or a new one.

        Raises:
            CopyError: the file is the journal of another copy, or is none.
        """
        if path is None or not path.exists():
            return cls(path, pair)
        try:
            kept = json.loads(path.read_bytes())
            if kept["version"] != _VERSION:
                raise ValueError
            journal = cls(path, kept["pair"], kept["done"], kept["current"], kept["following"], resumed=True)
        except (OSError, ValueError, LookupError, TypeError):
            raise CopyError(f"{path} is no journal of a copy; remove it, or name another --journal") from None
        if journal.pair != pair:
            raise CopyError(f"{path} is of the copy {journal.pair}; finish that one, or name another --journal")
        return journal

    def begin(self, resource: str) -> Mapping[str, str]:
        """Begin a resource, or go on with it; return what leads to its next page, {} to the first one."""
        if self.current != resource:
            self.current, self.following = resource, {}
            self._write()
        return self.following

    def note(self, following: Mapping[str, str]) -> None:
        """Note that all pages before one are copied, given what leads to it."""
        self.following = dict(following)
        self._write()

    def end(self) -> None:
        """Note that the current resource is copied."""
        self.done.append(self.current)
        self.current, self.following = "", {}
        self._write()

    def remove(self) -> None:
        """Remove the file, as the copy has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self.path is None:
            return
        kept = {
            "version": _VERSION,
            "pair": self.pair,
            "done": self.done,
            "current": self.current,
            "following": dict(self.following),
        }
        new = self.path.with_name(f"{self.path.name}.new")
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as opened:
                opened.write(json.dumps(kept).encode())
                opened.flush()
                os.fsync(opened.fileno())
            new.replace(self.path)
        except OSError as error:
            raise CopyError(f"cannot write {self.path}: {error.strerror}") from None
