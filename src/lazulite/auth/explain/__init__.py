"""Why credentials were refused: the usual mistakes in signatures, and the fields of a SAS. Only while it is asked."""
