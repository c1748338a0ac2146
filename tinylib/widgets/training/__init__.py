from tinylib.widgets.training.scaling import ScalingWidget

__all__ = ["ScalingWidget"]
