"""The indexes that a class declares. `indexes` says what their entries are, and how writes keep them."""

from collections.abc import Sequence
from typing import Literal

from lazulite_patterns.entities.errors import SchemaError


class Index:
    """An index of entities by columns.

    Attributes:
        name: of the index, as in `by`; part of the entries' keys.
        unique: whether two entities may not have the same values.
        within_partition: whether the entries lie in the entity's partition, and a look-up is in one partition.
        table: the table of the entries; None for the entities' own.
        copy: columns that the entries have, too.
        queue: the name of the queue whose worker writes the entries after the commit; None if the writer does.
        container: the container of the blobs with its lists; empty for rows.
    """

    container = ""

    def __init__(
        self,
        name: str,
        *fields: str | tuple[str, object],
        unique: bool = False,
        within_partition: bool = False,
        table: str | None = None,
        copy: Sequence[str] = (),
        queue: str | None = None,
    ) -> None:
        """Declare an index.

        Args:
            name: of the index.
            fields: names of columns, or pairs of a name and a component: `("age", integer(3))`. An entity in which
                one of them is None has no entry.
            unique: whether two entities may not have the same values; `within_partition`, in one partition.
            within_partition: whether the entries are written in the entity's transaction.
            table: the name of the entries' table; None for the entities' own.
            copy: names of columns that `by(…).copies()` reads without the entity. They are no parts of a key.
            queue: the name of the queue whose worker writes the entries after the commit; None if the writer does.

        Raises:
            SchemaError: there is no field, or two of these do not go together.
        """
        if not fields or (within_partition and table is not None):
            raise SchemaError(f"index {name}: it has fields, and within a partition the table of the entities")
        if unique and copy:
            raise SchemaError(f"index {name}: a unique index has no copies, as a mark could overwrite a claim")
        if queue is not None and (unique or within_partition or copy):
            raise SchemaError(f"index {name}: one of a queue is not unique, has no copies, and is in other partitions")
        self.name = name
        self.queue = queue
        self.copy = tuple(copy)
        self.fields = tuple((each, None) if isinstance(each, str) else each for each in fields)
        self.unique = unique
        self.within_partition = within_partition
        self.table = table

    def __eq__(self, other: object) -> bool:
        """Tell whether another declaration says the same, as that of a class and that of its subclass."""
        return type(other) is type(self) and vars(other) == vars(self)

    def __hash__(self) -> int:
        """Return a hash by the name."""
        return hash(self.name)


class Listing(Index):
    """An index whose entries are lists in few rows, or in blobs: the guide's index entities.

    Attributes:
        place: `partition` for rows in the entities' partition, which are written in their transaction; `table` for
            rows in other partitions or in another table; `blob` for a blob of each list.
    """

    def __init__(
        self,
        name: str,
        *fields: str | tuple[str, object],
        place: Literal["partition", "table", "blob"] = "partition",
        table: str | None = None,
        container: str = "",
        queue: str | None = None,
    ) -> None:
        """Declare a listing.

        Args:
            name: of the index.
            fields: as those of an index.
            place: where the lists are.
            table: the name of the lists' table; None for the entities' own.
            container: the name of the blobs' container.
            queue: as that of an index.

        Raises:
            SchemaError: there is no field, or lists within the partition have another table or a queue. Or lists
                in blobs have no container or a table, or others have a container.
        """
        if (place == "blob") != bool(container) or (container and table is not None):
            raise SchemaError(f"listing {name}: lists in blobs have a container and no table, others have none")
        super().__init__(name, *fields, within_partition=place == "partition", table=table, queue=queue)
        self.place = place
        self.container = container
