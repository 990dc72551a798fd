"""What `doctor` looks at, one room of the machine a file; every check tells, none raises."""
