"""Buy 64 cores for an hour in a market of one's own: ask for prices, buy, look at what one has, give it back.

`python examples/purchase.py` runs in a simulated market; `... embedded` launches the same twenty
resources in processes with an XMPP server. In a market that is running already, `ramp.connect()` takes the place of
`ramp.launch(...)`, and the rest stays as it is.
"""

import sys

import ramp

transport = sys.argv[1] if len(sys.argv) > 1 else "simulated"

with ramp.launch("table2", transport=transport) as market:
    wanted = ramp.request(cores=64, wall_time="1h", start="+10min", price=70)

    quoted = market.quote(wanted)
    print(f"{len(quoted.rounds)} rounds; the best offer costs {ramp.credits_text(quoted.units[0].cost)} credits")

    bought = market.submit(wanted, rounds=5, max_cost=5000)
    if not bought.committed:
        sys.exit(f"not bought: {bought.status}: {bought.reason}")
    unit = bought.units[0]
    print(f"bought {unit.cores} cores on {unit.resource} from {unit.start} to {unit.end}")

    for reservation in market.reservations():
        print(f"{reservation.state}: launch with --reservation={reservation.reservation_id}")

    balance = market.balance()
    print(f"{ramp.credits_text(balance.available)} credits are left")

    (back,) = market.cancel(unit.reservation_id, reason="only an example")
    print(f"given back: {ramp.credits_text(back.refund)} credits")
