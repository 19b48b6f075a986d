"""What the tests stand on: mechanisms to try, exact laws to compare with, planted faults, a Flower app."""
