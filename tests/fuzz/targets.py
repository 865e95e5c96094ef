"""The targets by name."""

from collections.abc import Callable
from typing import NamedTuple

from . import payload_targets, request_targets, wire_target
from .world import World


class Target(NamedTuple):
    """What an input is sent to, and how long inputs get."""

    run: Callable[[World, bytes], None]
    bytes_max: int = 16 * 1024


TARGETS: dict[str, Target] = {
    "atom": Target(payload_targets.atom_body),
    "batch": Target(payload_targets.batch, 32 * 1024),
    "filter": Target(payload_targets.filter_text, 8 * 1024),
    "headers": Target(request_targets.headers),
    "http": Target(wire_target.wire, 8 * 1024),
    "json": Target(payload_targets.json_body, 32 * 1024),
    "jwt": Target(request_targets.jwt),
    "sas": Target(request_targets.sas, 4 * 1024),
    "tokens": Target(request_targets.tokens, 4 * 1024),
    "url": Target(request_targets.url, 8 * 1024),
    "xml": Target(payload_targets.xml_body),
}
