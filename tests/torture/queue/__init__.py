"""Queues under kills, power cuts, clock steps and failing databases: every message is accounted for."""
