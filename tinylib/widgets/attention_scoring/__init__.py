from tinylib.widgets.attention_scoring.arrows import ArrowsWidget
from tinylib.widgets.attention_scoring.attention_scoring import AttentionScoringWidget
from tinylib.widgets.attention_scoring.kernel_regression import KernelRegressionWidget

__all__ = ["ArrowsWidget", "AttentionScoringWidget", "KernelRegressionWidget"]
