"""The machine behind the widgets: what computes, checks, stores, exports and trains."""
