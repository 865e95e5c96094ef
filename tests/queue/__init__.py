"""Tests of the Queue service below HTTP."""
