"""Read and write XML; the only package with lxml and signxml.

One module per document family; `xml` has the safe parser, schemas and markup, `signing` signatures, seals and the
notary; `codec` turns the pure machines' messages into metadata and XML and back. `schemas/` defines the wire format.
"""
