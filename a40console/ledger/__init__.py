"""What was measured, kept: runs, samples, verdicts, notes and hypotheses in one SQLite file."""
