"""What every named mechanism is: parameters, a guarantee, a law, and estimates."""
