"""A company's staff in a storage account, as in the design guide: each module is one part of it."""
