"""Contents: large, immutable byte strings that rows refer to, in a store beside the rows."""
