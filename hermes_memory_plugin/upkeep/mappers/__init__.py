"""Tool results to facts by declaration: a mapper says which tool's columns are which figures (docs/mappers.md)."""
