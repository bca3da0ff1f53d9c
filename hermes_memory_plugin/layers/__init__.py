"""The layers: facts, notes, scenes, persona, log, workspace."""
