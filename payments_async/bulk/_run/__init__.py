"""Acts: takes rows and sends them, reads the service's list, certifies. Any number of processes at once."""
