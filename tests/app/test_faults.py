"""The commands that change rules: what they leave behind."""

from lazulite.app.faults import RuleCommands
from lazulite.control.channel import Channel
from lazulite.engine.rocksdb.engine import RocksEngine
from lazulite.faults.rules import FaultRules
from lazulite.protocol.clock import system_clock
from lazulite.settings.config import Settings

STALE = '[[rule]]\nname = "old"\nstale = true'


async def test_the_rows_from_before_a_rule_are_released_with_it() -> None:
    engine = RocksEngine.open(None, system_clock)
    try:
        rules = FaultRules()
        commands = RuleCommands(rules, engine)
        await commands.open(Settings(), Channel("1"))
        await commands._add(STALE, "rules")
        assert rules.engine_before("old") is not None
        assert len(engine._cursors) == 1
        await commands._clear()
        assert not engine._cursors
    finally:
        await engine.close()


async def test_each_change_is_announced() -> None:
    announced = []

    async def announce() -> None:
        announced.append(len(rules))

    rules = FaultRules()
    commands = RuleCommands(rules, changed=announce)
    await commands._add('[[rule]]\nname = "a"\nerror = "ServerBusy"', "rules")
    await commands._clear()
    assert announced == [1, 0]
