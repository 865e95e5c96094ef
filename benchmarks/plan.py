"""How everything is measured: what the command line decides, once for all sections."""

from dataclasses import dataclass

from benchmarks.measurement import Load


@dataclass(frozen=True)
class Plan:
    """How everything is measured.

    Attributes:
        load: the load generator of closed loops.
        seconds: of each workload against each subject, over all rounds; the floor gets half.
        rounds: how often the subjects take turns.
        requests: the most of one run.
        entities: in a table, if nothing else is said.
        big: entities in the big table; 0 to do without.
        postgres: entities in the larger table of a database; 0 to do without.
        ingest_seconds: how long reads are measured beside ingest.
        azurite: whether it takes part.
        pin: whether server and client have a CPU each.
        only: the workloads whose name contains this.
    """

    load: Load
    seconds: float
    rounds: int
    requests: int
    entities: int
    big: int
    ingest_seconds: float
    azurite: bool
    pin: bool
    only: str = ""
    postgres: int = 0

    @property
    def slice_s(self) -> float:
        """Seconds of one run."""
        return self.seconds / self.rounds
