"""Event streams: a head, events in the order of their versions, and their ids, written in one transaction."""

from lazulite_patterns.streams.checks import StreamCheck
from lazulite_patterns.streams.layout import Event, Recorded
from lazulite_patterns.streams.protocol import AppendTooLarge, DuplicateEvent, WrongVersion
from lazulite_patterns.streams.stream import Stream

__all__ = ["AppendTooLarge", "DuplicateEvent", "Event", "Recorded", "Stream", "StreamCheck", "WrongVersion"]
