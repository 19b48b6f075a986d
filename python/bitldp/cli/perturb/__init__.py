"""The command `bitldp perturb`: columns of a file in, randomized columns out."""
