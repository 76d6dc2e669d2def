"""What goes on with the market as numbers over time, in the text format of Prometheus."""
