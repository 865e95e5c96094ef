"""The protocols of shapes, which the synchronous and the asynchronous classes run."""
