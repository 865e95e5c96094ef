"""Entities of tables in files, and back: by HTTP, from and to this server, the emulator and the cloud.

Invariants:

- An entity is the object that the service sends at minimal metadata, without the members of OData. Every format gives
  it back as it was: types, missing against null against empty, all digits.
- Memory does not depend on the length of a file or of a table.
- Nothing here prints, or reads flags. A caller passes a function that hears of the progress.
"""
