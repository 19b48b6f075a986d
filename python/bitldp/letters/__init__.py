"""What a report is worth: letters of words, their spread, and the equations that give them."""
