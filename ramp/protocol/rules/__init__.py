"""What an auction rule is, how its answers are checked, what is paid by it; `shipped` has the rules."""
