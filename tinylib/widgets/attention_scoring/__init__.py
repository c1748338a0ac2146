from tinylib.widgets.attention_scoring.arrows import ArrowsWidget
from tinylib.widgets.attention_scoring.attention_scoring import AttentionScoringWidget
from tinylib.widgets.attention_scoring.kernel_regression import KernelRegressionWidget
from tinylib.widgets.attention_scoring.width_trainer import WidthTrainer

__all__ = ["ArrowsWidget", "AttentionScoringWidget", "KernelRegressionWidget", "WidthTrainer"]
