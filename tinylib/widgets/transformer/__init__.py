from tinylib.widgets.transformer.ablation import AblationWidget
from tinylib.widgets.transformer.transformer import TransformerWidget
from tinylib.widgets.transformer.translation_trainer import TranslationTrainer

__all__ = ["AblationWidget", "TransformerWidget", "TranslationTrainer"]
