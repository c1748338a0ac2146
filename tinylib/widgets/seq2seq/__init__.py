from tinylib.widgets.seq2seq.seq2seq import Seq2SeqWidget

__all__ = ["Seq2SeqWidget"]
