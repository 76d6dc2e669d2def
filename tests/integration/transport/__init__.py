"""Agents on one embedded XMPP server, which ends with the last of these files."""
