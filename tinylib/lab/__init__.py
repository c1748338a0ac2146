"""Tools of the course, not its ideas, in trades.

`data` is what models are trained on, `figures` draws, `train` trains, `models` holds what comes
trained, `recipes` are the longer trainings, and `own` trains on your data. What serves all of
them lies beside: `look` (see inside models and sources), `table` (results), `weights` and `files`
(tensors on disk), `devices` and `processes` (where a model is trained), `fast_modules`.
"""
