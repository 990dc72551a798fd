"""What each panel says: pure functions from a reading and a size to lines."""
