"""Research reports: files read by page, in worker processes, and cut into passages that can be cited."""
