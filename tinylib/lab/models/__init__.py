"""Trained models: translators, language models, GPT-2, and how they compare."""
