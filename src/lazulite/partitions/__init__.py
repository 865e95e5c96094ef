"""Range partitions, scalability targets and throttling, as the cloud has them. All is off unless a server asks for it.

Three parts, each of which works alone: `targets` are the numbers, `ranges` and `balancer` divide a table among virtual
servers, and `gate` decides whether a request passes, waits or is refused. Data stay where they are: a map changes where
pages end, and never what a query returns.

Sources: *How to get most out of Windows Azure Tables* (the study, 2010), and *Windows Azure Storage* (SOSP 2011).
"""
