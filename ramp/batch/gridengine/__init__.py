"""Grid Engine (8.1): its commands' answers as values, and the plug-in that sells a part of it."""
