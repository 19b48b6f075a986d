"""Server's side of a Flower app: means of decoded reports."""
