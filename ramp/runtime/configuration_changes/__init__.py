"""What was changed while a market ran: kept over its file, compared with it, and written down with who and when."""
