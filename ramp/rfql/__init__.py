"""XML in and out: the only place with lxml and signxml.

Safe parser, schemas, one module a document family, signatures and the notary; `ramp.rfql.codec` turns the pure
machines' messages into metadata and XML and back. The wire contract itself is in `schemas/`.
"""
