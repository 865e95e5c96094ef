"""`python -m benchmarks.heat_maps`: the heat maps of the documentation, of five workloads in simulated time.

No server runs: a meter is given what requests would take. The same seeds give the same pictures.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from lazulite.traffic.heat_map import heat_map
from lazulite.traffic.meter import Meter, Resource
from lazulite.traffic.picture import svg

FOLDER = Path(__file__).parents[1] / "docs" / "operations" / "heat"
_HOURS = 3
_START = 1_795_824_000
"""A full hour."""
_PER_MINUTE = 120
_GET, _PUT = (1, 0, 0, 0, 500, 1, 0), (0, 0, 1, 500, 0, 1, 0)


def _user(chance: Random) -> str:
    return f"user{chance.randrange(10_000):05d}"


WORKLOADS: Mapping[str, Callable[[Random, int, float], str]] = {
    "uniform": lambda chance, _, __: _user(chance),
    "hot": lambda chance, _, __: "user04711" if chance.random() < 0.6 else _user(chance),
    "append-only": lambda _, number, __: f"{number:010d}",
    "prepend-only": lambda _, number, __: f"{9_999_999_999 - number:010d}",
    "daily": lambda chance, _, __: _user(chance),
}
"""Name -> what returns the key of a request, given its number and the hours since the start."""


def picture(name: str) -> str:
    """Return the picture of a workload."""
    chance, time = Random(7), float(_START)
    meter, table = Meter(lambda: time), Resource("orders", "table", name)
    number, hours = 0, 72 if name == "daily" else _HOURS
    while time < _START + hours * 3600:
        passed = (time - _START) / 3600
        number += 1
        key = WORKLOADS[name](chance, number, passed)
        meter.note(table, key, _PUT if chance.random() < 0.5 else _GET)
        rate = _PER_MINUTE * (0.06 * (1.02 - math.cos(passed / 12 * math.pi)) if name == "daily" else 1)
        time += 60 / rate
    traffic = meter.traffic(table)
    assert traffic is not None
    return svg(heat_map(name, traffic, time - 1, hours * 3600))


def main() -> None:
    """Write all pictures."""
    FOLDER.mkdir(exist_ok=True)
    for name in WORKLOADS:
        (FOLDER / f"{name}.svg").write_text(picture(name) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
