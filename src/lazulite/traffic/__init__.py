"""The traffic of resources: what each table, queue and container takes, by partition and key range, over time.

The meter counts, and changes nothing. Its memory is bounded, whatever the number of resources and partitions.
"""
