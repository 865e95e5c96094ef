"""A request on its way: its call, headers, preconditions and paging."""
