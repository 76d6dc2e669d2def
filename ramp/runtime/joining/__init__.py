"""How a site joins a market: invitations, requests for certificates, the authority that answers them."""
