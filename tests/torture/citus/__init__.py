"""Three services on a Citus cluster whose nodes fail."""
