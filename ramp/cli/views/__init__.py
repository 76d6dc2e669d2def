"""What the verbs show people: reports, tables and the live view of an auction."""
