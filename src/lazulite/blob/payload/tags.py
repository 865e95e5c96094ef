"""The `Tags` document, in and out. Source: REST reference, Get and Set Blob Tags."""

from lazulite.blob.model.tags import Tags, check_tags
from lazulite.protocol.xml import document as xml


def read_tags(body: bytes) -> dict[str, str]:
    """Return the tags of a document; an empty `TagSet` has none.

    Raises:
        ServiceError: `InvalidXmlDocument`, `RequestBodyTooLarge`, or as `check_tags`.
    """
    root = xml.read(body)
    if root.name != "Tags":
        raise xml.invalid_document("The root must be Tags.", root.place)
    (tag_set,) = _children(root, "TagSet")
    tags = xml.only_children(tag_set)
    for tag in tags:
        if tag.name != "Tag":
            raise xml.invalid_document("Only Tag is expected here.", tag.place)
    return check_tags(_read_tag(tag) for tag in tags)


def _read_tag(node: xml.Node) -> tuple[str, str]:
    name, value = _children(node, "Key", "Value")
    if name.children or value.children:
        raise xml.invalid_document("Key and Value must contain text only.", node.place)
    return name.text, value.text  # With the blanks around them.


def _children(node: xml.Node, *names: str) -> list[xml.Node]:
    """Return the children of an element that has these and no others, each once."""
    children = {child.name: child for child in xml.only_children(node)}
    if children.keys() != set(names) or len(node.children) != len(names):
        raise xml.invalid_document(f"{node.name} needs {' and '.join(names)}.", node.place)
    return [children[name] for name in names]


def write_tags(tags: Tags) -> bytes:
    """Return the document."""
    return xml.document(tags_element(tags))


def tags_element(tags: Tags) -> str:
    """Return the markup of tags, as documents and lists have it."""
    pairs = (xml.element("Tag", xml.leaf("Key", name), xml.leaf("Value", value)) for name, value in tags.items())
    return xml.element("Tags", xml.element("TagSet", *pairs))
