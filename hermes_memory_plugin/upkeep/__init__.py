"""What keeps the stores in order behind the scenes."""
