"""The targets by name."""

from collections.abc import Callable
from typing import NamedTuple

from . import blob_targets, payload_targets, queue_targets, request_targets, wire_target
from .blob_world import BlobWorld
from .queue_world import QueueWorld
from .world import World


class Target(NamedTuple):
    """What an input is sent to, and how long inputs get."""

    run: Callable[..., None]
    """Takes a world of the target's own kind, and the input."""
    bytes_max: int = 16 * 1024
    world: Callable[[], World] = World


TARGETS: dict[str, Target] = {
    "atom": Target(payload_targets.atom_body),
    "batch": Target(payload_targets.batch, 32 * 1024),
    "blobs": Target(blob_targets.blobs, 8 * 1024, BlobWorld),
    "filter": Target(payload_targets.filter_text, 8 * 1024),
    "headers": Target(request_targets.headers),
    "http": Target(wire_target.wire, 8 * 1024),
    "json": Target(payload_targets.json_body, 32 * 1024),
    "jwt": Target(request_targets.jwt),
    "lists": Target(blob_targets.lists, 8 * 1024, BlobWorld),
    "messages": Target(queue_targets.messages, 96 * 1024, QueueWorld),
    "queues": Target(queue_targets.queues, 8 * 1024, QueueWorld),
    "sas": Target(request_targets.sas, 4 * 1024),
    "shapes": Target(payload_targets.shapes),
    "tokens": Target(request_targets.tokens, 4 * 1024),
    "url": Target(request_targets.url, 8 * 1024),
    "xml": Target(payload_targets.xml_body),
}
