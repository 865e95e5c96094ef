"""Servers that break one promise each, which the campaigns must find."""


def replace_attributes(owner: type, **attributes: object) -> None:
    """Replace functions and other attributes of a class."""
    for name, attribute in attributes.items():
        setattr(owner, name, attribute)
