"""Bodies of Set ACL that every service rejects."""


def policies(*each: str) -> str:
    """A document of identifiers, given the content of each."""
    identifiers = "".join(f"<SignedIdentifier>{one}</SignedIdentifier>" for one in each)
    return f"<SignedIdentifiers>{identifiers}</SignedIdentifiers>"


def _terms(text: str) -> str:
    return policies(f"<Id>one</Id><AccessPolicy>{text}</AccessPolicy>")


def malformed(letters: str) -> dict[str, str]:
    """Documents that are 400 `InvalidXmlDocument`, by what is wrong; `letters` are the resource's, in their order."""
    first, last = letters[0], letters[-1]
    return {
        "letters out of order": _terms(f"<Permission>{last}{first}</Permission>"),
        "a letter twice": _terms(f"<Permission>{first}{first}</Permission>"),
        "a letter in upper case": _terms(f"<Permission>{first.upper()}</Permission>"),
        "an unknown letter": _terms("<Permission>z</Permission>"),
        "an offset": _terms("<Expiry>2033-02-03T04:05:06+02:00</Expiry>"),
        "an offset of nothing": _terms("<Start>2033-02-03T04:05:06.0000000+00:00</Start>"),
        "nine digits": _terms("<Expiry>2033-02-03T04:05:06.123456789Z</Expiry>"),
        "no zone": _terms("<Expiry>2033-02-03T04:05:06</Expiry>"),
        "no time": _terms("<Start>tomorrow</Start>"),
        "an unknown term": _terms("<Surprise />"),
        "an unknown element": policies("<Id>one</Id><Surprise />"),
        "something else than an identifier": "<SignedIdentifiers><Surprise /></SignedIdentifiers>",
        "no id": policies("<AccessPolicy />"),
        "an empty id": policies("<Id />"),
        "a long id": policies(f"<Id>{'x' * 65}</Id>"),
        "an id twice": policies("<Id>one</Id>", "<Id>one</Id>"),
        "six": policies(*(f"<Id>{number}</Id>" for number in range(6))),
    }
