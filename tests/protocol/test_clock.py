import time

from lazulite.protocol.clock import UNIX_EPOCH_TICKS, system_clock, unix_seconds


def test_ticks_count_from_1601() -> None:
    assert unix_seconds(UNIX_EPOCH_TICKS) == 0
    assert unix_seconds(UNIX_EPOCH_TICKS + 15_000_000) == 1.5
    before = time.time()
    assert before - 1 <= unix_seconds(system_clock()) <= time.time() + 1
