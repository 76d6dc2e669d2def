"""Jobs that may change their size: classes, sizes, speed-up laws, what a change costs."""
