"""XML in and out: the safe parser, the schemas, one module a document family, signatures."""
