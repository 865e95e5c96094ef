"""A Citus cluster: where partitions are, which nodes answer, and what the workers need."""
