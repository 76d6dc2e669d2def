"""The multicluster scheduler KOALA with malleable jobs (J. Buisson and others, CoreGRID TR-0092, 2007).

Its parts have the paper's names: co-allocator, processor claimer, information service, runners, malleability manager.
"""
