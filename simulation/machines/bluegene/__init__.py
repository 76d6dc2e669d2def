"""Blue Gene/L: midplanes, lines with multi-toroidal links, and partitions."""
