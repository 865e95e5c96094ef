"""A key set in a file, read again when it changes.

Invariant: a file that becomes unreadable leaves the last good keys in force, and that is reported once.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

from lazulite.auth.accounts.account import LOOK_SECONDS
from lazulite.auth.accounts.file_store import FileState, state_of
from lazulite.auth.bearer.jwks import JWKS_BYTES_MAX, JwksError, KeySet, parse_jwks


class FileKeys:
    """The keys of a file. See `KeySource`.

    Args:
        path: the file, a JSON Web Key Set.
        report: gets the reason, once for each bad state, if the file cannot be read.
        monotonic: seconds that never step back.

    Raises:
        JwksError: the file cannot be read from the start.
    """

    def __init__(
        self, path: Path, report: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._report = report
        self._monotonic = monotonic
        self._look_again_s = monotonic() + LOOK_SECONDS
        self._state, self._keys = self._read()

    async def current(self) -> KeySet:
        """Return the keys of the file as it is now, give or take `LOOK_SECONDS`."""
        now_s = self._monotonic()
        if now_s >= self._look_again_s:
            self._look_again_s = now_s + LOOK_SECONDS
            self._look()
        return self._keys

    async def renewed(self, known: KeySet) -> KeySet:  # noqa: ARG002 - of no use here: a look costs next to nothing
        """Look at once."""
        self._look()
        return self._keys

    def _look(self) -> None:
        try:
            state: FileState | None = state_of(os.stat(self._path))
        except OSError:
            state = None
        if state == self._state:
            return
        self._state = state
        try:
            self._state, keys = self._read()
        except JwksError as error:
            self._report(f"{error}; the signing keys stay as they were")
            return
        if keys != self._keys:
            self._keys = keys

    def _read(self) -> tuple[FileState | None, KeySet]:
        try:
            with self._path.open("rb") as file:
                state = state_of(os.fstat(file.fileno()))
                return state, parse_jwks(file.read(JWKS_BYTES_MAX + 1))
        except OSError as error:
            raise JwksError(f"cannot read {self._path}: {error.strerror}") from None
        except JwksError as error:
            raise JwksError(f"{self._path}: {error}") from None
