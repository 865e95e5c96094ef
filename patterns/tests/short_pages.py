"""A service in memory whose pages are short or empty, as those of the real one may be."""

from dataclasses import replace
from itertools import cycle

from lazulite_patterns.effects.effect import Effect
from lazulite_patterns.effects.tables import Found, Page
from lazulite_patterns_simulation import Simulation

_PAGES_MAX = 1000


class ShortPages(Simulation):
    """Gives pages of these sizes in turn, however many entities are asked for. The first page is always empty."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.sizes = cycle([*sizes, 1])
        self.pages = 0

    def perform(self, effect: Effect[object]) -> object:
        if isinstance(effect, Page):
            self.pages += 1
            assert self.pages < _PAGES_MAX, "the protocol asks for the same page again and again"
            if (size := next(self.sizes)) == 0 or effect.continuation is None:
                return Found((), effect.continuation or ("", ""))
            effect = replace(effect, top=min(effect.top or size, size))
        return super().perform(effect)
