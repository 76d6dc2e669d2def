"""Banking Agents of which one speaks and the other stands by."""
