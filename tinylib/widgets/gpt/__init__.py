from tinylib.widgets.gpt.gpt import GPTWidget
from tinylib.widgets.gpt.gpt_trainer import GPTTrainer
from tinylib.widgets.gpt.loss_bench import LossBenchWidget
from tinylib.widgets.gpt.time_machine import TimeMachineWidget

__all__ = ["GPTTrainer", "GPTWidget", "LossBenchWidget", "TimeMachineWidget"]
