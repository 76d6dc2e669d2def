"""Read XML of strangers safely: parsing with limits, schemas, and elements to and from values."""
