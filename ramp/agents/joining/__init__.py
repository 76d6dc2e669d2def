"""Markets of several sites: keys, enrolment, and the register of invitations."""
