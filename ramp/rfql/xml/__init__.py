"""XML of strangers made safe: parsing with limits, schemas, and elements to and from values."""
