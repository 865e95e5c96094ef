"""The settings of a service: logging, metrics, CORS and those of blobs, part by part.

A part is compared by the texts of its elements. One that is missing, empty or `false` is the same, as services write
documents in several ways.
"""

from collections.abc import Mapping
from xml.etree import ElementTree as ET

from lazulite.resources.sender import Call, Sender, send

_PARAMETERS = {"restype": "service", "comp": "properties"}

Parts = Mapping[str, ET.Element]
"""The elements of a `StorageServiceProperties`, by name."""


def service_parts(sender: Sender, service: str) -> dict[str, ET.Element]:
    """Return the parts of the settings of a service. Raises as `send`."""
    root = send(sender, Call(service, "GET", "", _PARAMETERS)).root
    return {each.tag: each for each in root}


def set_service_parts(sender: Sender, service: str, parts: Parts) -> None:
    """Replace some parts of the settings of a service, and leave the others. Raises as `send`."""
    root = ET.Element("StorageServiceProperties")
    root.extend(parts.values())
    send(sender, Call(service, "PUT", "", _PARAMETERS, {"Content-Type": "application/xml"}, ET.tostring(root)))


def is_same_part(first: ET.Element | None, second: ET.Element | None) -> bool:
    """Tell whether two parts say the same."""
    return _texts(first) == _texts(second)


def _texts(element: ET.Element | None) -> list[tuple[str, object]]:
    """Return the texts of an element, without empty and false ones. The order counts among rules of CORS alone."""
    if element is None:
        return []
    if not len(element):
        text = (element.text or "").strip()
        return [] if text.lower() in ("", "false") else [("", text)]
    present: list[tuple[str, object]] = [(each.tag, texts) for each in element if (texts := _texts(each))]
    return present if element.tag == "Cors" else sorted(present, key=lambda each: each[0])
