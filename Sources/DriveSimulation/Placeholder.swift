// Simulated drives.
