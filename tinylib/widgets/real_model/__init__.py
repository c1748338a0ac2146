from tinylib.widgets.real_model.real_model import RealModelWidget

__all__ = ["RealModelWidget"]
