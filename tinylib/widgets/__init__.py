"""The widgets, by the chapter that shows them first; tinylib/live is what they are made of."""
