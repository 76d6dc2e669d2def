"""What chooses nodes of a real site for requests that care where they are."""
