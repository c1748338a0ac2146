from tinylib.widgets.museum.broken_gpt import BrokenGPT
from tinylib.widgets.museum.museum import MuseumWidget

__all__ = ["BrokenGPT", "MuseumWidget"]
