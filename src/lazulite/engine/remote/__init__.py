"""The engine of another process: client, server and the messages between them."""
