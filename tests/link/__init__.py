"""Tests of the link to another machine."""
