"""Frozen values that every layer speaks in: time, money, requests, offers, agreements, messages."""
