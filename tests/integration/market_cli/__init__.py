"""The command line and the Python interface against one market, which ends with the last of these files."""
