"""The command `ramp`: finding its verbs, and what they share; `verbs` has one module a noun, `views` what they show."""
