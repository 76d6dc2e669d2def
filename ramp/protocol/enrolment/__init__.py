"""The enrolment office, applicants for certificates, and followers of the revocation list."""
