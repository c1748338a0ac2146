from tinylib.widgets.speed.acceptance import AcceptanceWidget

__all__ = ["AcceptanceWidget"]
