"""The workloads of `examples/advise`, and changes to them."""

from pathlib import Path

from lazulite.advise.advice import Advice, advise
from lazulite.advise.declared import workload_of
from lazulite.partitions.targets import CURRENT

EXAMPLES = Path(__file__).parents[2] / "examples" / "advise"


def advised(name: str, *changes: tuple[str, str]) -> Advice:
    """Return the advice on an example, after each old text was replaced by a new one."""
    text = (EXAMPLES / f"{name}.toml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return advise(workload_of(text, name), CURRENT)
