"""The jobs of buyers on what a resource has sold: each from its order to its end, and the launcher that runs them."""
