"""Client's side of a Flower app: private reports and their cost."""
