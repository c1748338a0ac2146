from tinylib.widgets.decoding.bleu import BleuWidget
from tinylib.widgets.decoding.decoding import DecodingWidget

__all__ = ["BleuWidget", "DecodingWidget"]
