"""A library of small pure functions, and inputs to test them with; faults are planted in its functions."""
