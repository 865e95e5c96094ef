"""The composition root: settings made into an engine, services, a server and workers."""
