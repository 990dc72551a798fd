"""What limits the present speed, and what is wrong: pure rules over snapshots."""
