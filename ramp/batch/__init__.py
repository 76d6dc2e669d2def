"""Real batch systems behind Resource Agents: what every such plug-in has in common, and one folder a system."""
