"""Processes replaced behind a load balancer."""
