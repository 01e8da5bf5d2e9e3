"""What comes from outside, read and checked: arguments, configuration files, signatures."""
