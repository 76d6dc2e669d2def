"""XML in and out: the only place with lxml and signxml.

One module a document family; `xml` has the safe parser, schemas and markup, `signing` signatures, seals and the notary;
`codec` turns the pure machines' messages into metadata and XML and back. The wire contract itself is in `schemas/`.
"""
