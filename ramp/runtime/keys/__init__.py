"""Keys and certificates on disk: issued, stored, revoked."""
