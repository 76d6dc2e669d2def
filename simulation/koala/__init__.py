"""The multicluster scheduler KOALA with malleable jobs (J. Buisson and others, CoreGRID TR-0092, 2007).

Its parts have the paper's names: co-allocator, runners, malleability manager. Input files, and local users with jobs of
their own, are left out: no experiment of the paper has any.
"""
