from tinylib.widgets.museum.museum import MuseumWidget

__all__ = ["MuseumWidget"]
