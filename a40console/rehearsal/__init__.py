"""A day that is played before it is shown: what the gallery's screens are drawn from."""
