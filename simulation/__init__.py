"""The simulated world: machines, workloads, schedulers, virtual time, studies."""
