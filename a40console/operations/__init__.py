"""What spans domains: an engine's life from command to verified stop."""
