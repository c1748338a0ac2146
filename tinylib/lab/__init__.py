"""Tools of the course, not its ideas: `look` (see inside models and sources), `plot` (drawing)."""
