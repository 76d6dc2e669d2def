"""The discrete-event kernel."""
