"""The engine on RocksDB."""
