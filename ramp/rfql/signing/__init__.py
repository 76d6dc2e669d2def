"""Who says so: certificates, seals, XML signatures, and what they prove."""
