"""The second versions of schedulers: whole logs on flat machines in one compiled loop.

A flat machine is a number of interchangeable processors, so a placement is a count and a whole log can be scheduled by
loops over integers. Each loop here makes the same decisions as the scheduler that declares it does on a flat machine
(`tests/contract/test_schedulers.py` compares them job by job); the loops exist because a log of 77 000 jobs should take
a second.

Shared rules: all ends of a time come before the arrivals of that time, then the scheduler decides once; time is an
integer (any unit); jobs are in order of submission. Where a running job outruns its request, its expected run time is
doubled until its expected end lies in the future again. All loops are called alike: submission times, times that the
jobs will hold their processors, run times asked for, sizes, processors of the machine, and the scheduler's options
where it has some.

The compiled code is cached beside each module until that file changes: after a change of running_jobs.py, touch the
others.
"""
