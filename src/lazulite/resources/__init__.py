"""The resources of an account as a client sees them: tables, queues, containers and settings, by requests.

Nothing here knows how requests travel: a `Sender` does. Seed files and copies of accounts are made of these functions.
"""
