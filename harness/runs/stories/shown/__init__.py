"""Stories for people: the page of reference, a cell step by step, and its diagram."""
