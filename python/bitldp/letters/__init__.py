"""Letters of reports: the values that they stand for, their variance, and how to solve for them."""
