"""The built-in mappers: one list of mappers a file, in the form a user writes his own."""
