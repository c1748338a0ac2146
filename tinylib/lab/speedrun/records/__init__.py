"""The submissions that hold or held a record, and the reference run; each is one file."""
