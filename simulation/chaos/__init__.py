"""A real market on this computer under steady load, whose processes are killed and stopped by turns."""
