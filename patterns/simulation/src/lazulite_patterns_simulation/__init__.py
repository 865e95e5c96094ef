"""A service in memory, faults and a model checker, for tests of protocols."""

from lazulite_patterns.effects.failpoints import Crash
from lazulite_patterns_simulation.driver import Simulation
from lazulite_patterns_simulation.explorer import Explored, Faults, InvariantError, explore
from lazulite_patterns_simulation.faults import Fault, FaultAt, every_fault
from lazulite_patterns_simulation.world import World

__all__ = [
    "Crash",
    "Explored",
    "Fault",
    "FaultAt",
    "Faults",
    "InvariantError",
    "Simulation",
    "World",
    "every_fault",
    "explore",
]
