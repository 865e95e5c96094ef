"""An account of the emulator, filled from a seed, copied to a server of this process, and compared."""

from functools import partial
from pathlib import Path

import pytest
from tests.seed.test_apply import SEED

import lazulite.testing
from lazulite.account_copy.comparing import Comparison
from lazulite.account_copy.copying import AccountCopy
from lazulite.account_copy.journal import Journal
from lazulite.account_copy.messages import MessagesByGet
from lazulite.account_copy.sender_pairs import SenderPairs
from lazulite.cli.http_sender import HttpSender
from lazulite.seed.apply import Application, Changes
from lazulite.seed.document import read_seed

from .test_patterns_pages import AZURITE, azurite

pytestmark = pytest.mark.skipif(not AZURITE.is_file(), reason="Azurite is not installed")
FULL_POLICY = {"reader": {"permission": "r", "start": "2020-01-01T00:00:00Z", "expiry": "2030-01-01T00:00:00Z"}}
"""Azurite refuses a policy of a table that has no start."""


def test_the_emulator_is_filled_from_a_seed_and_its_data_is_pulled(tmp_path: Path) -> None:
    seed = read_seed({**SEED, "tables": {"Orders": {**SEED["tables"]["Orders"], "policies": FULL_POLICY}}})
    with azurite(tmp_path) as source, lazulite.testing.server() as target:
        with HttpSender(source) as sender:
            Application(sender, Changes()).run(seed.own)
            again = Changes()
            Application(sender, again).run(seed.own)
            assert not again.any
        pairs = SenderPairs(partial(HttpSender, source), partial(HttpSender, target.connection_string), 2)
        with pairs:
            messages = MessagesByGet(pairs.pair().source)
            copied = AccountCopy(pairs, Journal(None, ""), messages, lambda _: None).run()
            assert list(Comparison(pairs, lambda _: None).differences()) == []
    assert (copied.entities, copied.messages, copied.blobs) == (3, 2, 3)
