"""From a question to the block that is injected."""
