from tinylib.widgets.kv_cache.race import RaceWidget

__all__ = ["RaceWidget"]
