from tinylib.widgets.repair.broken_gpt import BrokenGPTTrainer

__all__ = ["BrokenGPTTrainer"]
