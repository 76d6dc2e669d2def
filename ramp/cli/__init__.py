"""The command `ramp`: `verbs` has one module a noun, `views` the output."""
