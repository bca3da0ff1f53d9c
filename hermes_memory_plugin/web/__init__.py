"""The page in a browser: the verbs of the facade as server-rendered HTML, on this machine alone."""
