"""The blobs that a SAS reaches, and what such a token may do with them."""

from dataclasses import dataclass

SELECTED_LETTERS = frozenset("rdxyt")
"""What a token for one snapshot or version may permit: no permission that would change the blob itself."""


@dataclass(frozen=True, slots=True)
class BlobScope:
    """The blobs within reach."""

    container: str
    blob: str = ""
    """The name of the one blob; "": all blobs of the container, and the container itself."""
    is_directory: bool = False
    """Whether `blob` is the beginning of names, up to a slash that it lacks."""

    def covers(self, resource: str) -> bool:
        """Tell whether a container, or a blob given as `container/blob`, is within reach."""
        if not self.blob:
            return resource == self.container or resource.startswith(f"{self.container}/")
        name = f"{self.container}/{self.blob}"
        return resource.startswith(f"{name}/") if self.is_directory else resource == name
