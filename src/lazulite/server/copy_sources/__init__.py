"""Sources of copies on other servers, for `--copy-source-host`."""
