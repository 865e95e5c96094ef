"""The control channel: commands to a running server, as lines of JSON over a Unix socket."""
