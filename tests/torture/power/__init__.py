"""Power cuts: the disks that each may leave, and what a server makes of them."""
