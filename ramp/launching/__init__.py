"""What runs jobs at a site: the worker that acts as a buyer's local account."""
