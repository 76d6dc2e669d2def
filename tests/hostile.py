"""Values that nobody means: moments, numbers and texts for every place that takes what people type."""

TIMES = ("+99999999d", "-99999999d", "9999-12-31T23:59", "0001-01-01", "9" * 400, "tomorrow 25:00", "monday monday")
NUMBERS = ("1" + "0" * 30, "-1", "nan", "inf", "1e400", "1e15", "9" * 5000, "0x10", "٣", "1,5", "--", "-5")
TEXTS = (
    *("", " ", "\n", "ünï", "x" * 300, "../..", "/", ".", "'", "$(id)", "\x1b[31m", "..", "=", "a=", "1..", "[", "{x}"),
)
