"""One kind of machine a file, declared where it is written; the name is the name of the file."""
