"""The Angara paper: allocators of an n-dimensional torus."""
