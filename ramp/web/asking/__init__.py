"""The form of a request: texts in, an RFQL document or errors out. Pure."""
