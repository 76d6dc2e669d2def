"""The enrolment office, those who ask it for a certificate, and those who follow what it revokes."""
