"""What runs the pure machines: host, journal, clock, identifiers, configuration, state folder, guests."""
