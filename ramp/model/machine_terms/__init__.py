"""What a machine is, against what a request asks of any machine: terms that no price and no time change."""
