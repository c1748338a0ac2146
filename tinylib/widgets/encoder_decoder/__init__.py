from tinylib.widgets.encoder_decoder.encoder_decoder import EncoderDecoderWidget

__all__ = ["EncoderDecoderWidget"]
