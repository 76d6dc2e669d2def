"""RAMP, a Resource Allocation Market Place: everything a site needs to buy or sell compute time."""
