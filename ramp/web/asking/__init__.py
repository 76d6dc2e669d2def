"""A request as it is being written in a form: texts in, an RFQL document or what is wrong with it out. Pure."""
