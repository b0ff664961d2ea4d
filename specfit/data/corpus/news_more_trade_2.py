"""More train events: trade, work, money and transport (form: see event_type.py)."""

from __future__ import annotations

TRADE_2 = """
@ stock_listing
# p=12..90 r=5..60 m=40..900..10
L shares in {firm1} of {town1} were traded for the first time on {day1}, and a bell was rung.
L from garage to stock exchange: {firm1} of {town1} sold shares to the public on {day1}.
L buyers fought for shares in {firm1} on {day1}, making a handful of clerks in {town1} rich.
F they were offered at ${p} and closed {r} percent higher.
F the sale raised ${m} million.
F the founders keep a majority of the votes.
D it has yet to earn a profit, as skeptics keep repeating.
D a cleaner paid in shares years ago can now retire.
D champagne was served in paper cups because the glasses were locked away.
Q we were two people and one extension cord
Q at that price you are buying hope
Q now the world reads our homework every quarter
Q I shall buy a boat, a small one
R co-founder of the company; a fund manager; an early employee; a finance professor
X first results are due in {month}.
X employees may sell from {month}.
X the cash will go into a site in {town}.
S {firm1} went public.
S shares closed {r} percent above ${p}.
S the sale raised ${m} million.
@ pension_fund_gap
# m=20..900..10 p=4..22 n=3..90
L pensions in {county1} may shrink, because the fund has lost money, its directors wrote on
  {day1}.
L a letter with bad news reached retired workers in {county1} on {day1}.
L retired miners and clerks crowded into a hall in {county1} on {day1} to hear what became of
  their savings.
F the fund is short of ${m} million, and {n},000 people rely on it.
F payments could fall by {p} percent.
F most of the loss stems from shopping centers that stand empty.
D the directors' bonuses, printed in small type, were read aloud to boos.
D a similar fund had sold the same buildings in good time.
D an audit two years ago had been filed without action.
Q I paid in for forty years and never missed a month
Q we made errors, and we will not hide them
Q somebody should have looked out of the window and seen the empty stores
Q at my age one cannot start over
R a retired {job}; the chairman of the fund; a pensions expert; a lawyer for the members
X members vote on a rescue plan on {day}.
X an inquiry is to report by {month}.
X the state might lend money from {month}.
S pensions in {county1} may be cut.
S the fund lacks ${m} million.
S payments could fall by {p} percent.
@ cargo_bikes
# b=8..90 d=20..90 t=3..40
L parcels in the center of {town1} are arriving by bicycle since {day1}, and vans must stay
  outside.
L vans were turned back at the edge of the old quarter of {town1} on {day1}, while couriers
  pedaled past.
L legs instead of engines: a new delivery scheme rolled into {town1} on {day1}.
F {b} cargo bikes replace {d} vans.
F they carry up to {t},000 parcels a week from a depot.
F shop deliveries by truck are allowed only before ten.
D a washing machine was the heaviest load so far, and it went uphill.
D cobbles have already shaken a few eggs to pieces.
D butchers ask how half a cow should be moved.
Q I have lost ten pounds and found a second breakfast
Q you can hear sparrows on the square again
Q they mean well, but my beer weighs a ton
Q it is faster because nobody hunts for a parking space
R a courier; the traffic councilor; a pub owner; a {job} with a shop in the center
X the scheme will be judged in {month}.
X a second depot opens by {month}.
X fines for vans will be charged from {day}.
S parcels in {town1} come by bike.
S {b} bikes replace {d} vans.
S they carry up to {t},000 parcels a week.
@ night_train
# h=8..16 f=29..190..10 b=90..400..10
L a night train left {town1} for {town2} on {day1}, for the first time in decades.
L passengers in slippers waved from the windows when the sleeper from {town1} to {town2} set off
  on {day1}.
L whoever goes to bed in {town1} can wake up in {town2}, now that a sleeping car service has
  started on {day1}.
F the trip takes {h} hours, and the cheapest bunk is ${f}.
F there are {b} beds in restored carriages.
F breakfast is brought by a steward at seven.
D one carriage had served as a chicken house before it was saved.
D the heating knew only two settings, tropical and off.
D flights on the same route are cheaper, though not by much.
Q I fell asleep in a tunnel and woke by the sea
Q sleep is a big word for it, but I would go again
Q we are booked out until summer
Q tracks are mended at night, and that is our worst enemy
R the train manager; a passenger and {job}; a railway historian; an airline analyst
X it runs every {day} until {month}.
X a dining car should be added in {month}.
X a third stop is under negotiation.
S a night train links {town1} and {town2}.
S it takes {h} hours.
S bunks cost ${f} or more.
@ ferry_breakdown
# p=60..900..10 h=3..19 c=20..200..10
L the ferry to the island off {town1} lost its engine in the middle of the bay on {day1}.
L passengers drifted off {town1} for most of {day1}, sustained by peanuts and an accordion.
L a rope caught in the propeller stopped the island ferry short of {town1} on {day1}.
F {p} people and {c} cars were aboard for {h} hours.
F a tug finally brought it in after two lines had snapped.
F it is older than its captain.
D a wedding party danced on the car deck without the groom, who was waiting ashore.
D islanders have asked for a new ship since the last one was painted over.
D children were allowed to ring the bell, which they did.
Q the toilets gave up before we did
Q there was no danger at any time, only bad singing
Q for you it is a funny tale, for us it is the only road
Q my fish was fresh when we cast off
R the captain; an islander; a bride; head of the ferry line
X divers inspect the hull on {day}.
X a replacement is on its way from {town}.
X tickets will be refunded until {month}.
S a ferry broke down off {town1}.
S {p} people were aboard for {h} hours.
S {c} cars were on board.
@ parking_fees
# f=2..9 s=120..900..10 m=2..19
L parking in the center of {town1} has cost money from {day1}, even on Sundays.
L motorists in {town1} fed new meters with coins, and with insults, on {day1}.
L free parking came to an end in {town1} on {day1}, to the fury of some and the delight of
  cyclists.
F an hour is ${f}, and {s} spaces are affected.
F the town hopes for ${m} million a year, to be spent on buses.
F those who live there pay less.
D on the first morning, several machines swallowed cards and kept them.
D a dentist complained that patients ran out with cotton in their mouths.
D in {town}, where fees came earlier, sales did not suffer.
Q I came for bread and paid more for the curb
Q a street is not a garage
Q the first week is always a theater
Q at last there are empty places, and I gladly pay for them
R the traffic councilor; a shopper; a dentist; a member of the cycling club
X wardens hand out only warnings until {day}.
X the council looks at the figures in {month}.
X a petition with signatures will be delivered on {day}.
S parking in {town1} now costs money.
S an hour is ${f}.
S {s} spaces are affected.
@ toy_maker_order
# n=20..900..10 e=5..60 w=4..40
L a tiny toy workshop in {town1} landed the order of its life on {day1}.
L wooden ducks from {town1} will travel the world after {firm1} placed a huge order on {day1}.
L the phone rang during lunch on {day1}, and ever since, saws have not been still at a toy maker's
  in {town1}.
F it must deliver {n},000 pieces in {w} weeks, with {e} employees.
F last year it made a tenth of that.
F neighbors help to sand and paint.
D the duck was designed by a great-uncle who never left the valley.
D the right beech wood is hard to come by.
D a cheap copy made of plastic has appeared already.
Q I asked them to repeat the number and then I sat down
Q even the priest paints beaks now
Q growing too quickly has killed better firms than ours
Q a duck without a wobble is not our duck
R the toy maker; a buyer for the customer; a neighbor and {job}; a business adviser
X the first truck leaves on {day}.
X a second workshop may be rented in {month}.
X a court will look at the copy in {month}.
S a toy workshop in {town1} got a huge order.
S it must deliver {n},000 pieces in {w} weeks.
S it has {e} employees.
@ heat_pump_fraud
# v=20..300..10 m=2..30 d=3..18
L dozens of homeowners in {county1} paid for heaters that never came, prosecutors said on {day1}.
L a salesman with a warm smile cheated {people} in {county1} out of their savings, it was revealed
  on {day1}.
L investigators searched an office in {county1} on {day1} and found brochures, but no heaters.
F {v} victims lost ${m} million together.
F the swindle went on for {d} months.
F deposits were sent abroad within minutes.
D fake reviews praised the firm, all of them written on one evening.
D a suspicious widow kept every envelope, which helped a lot.
D the company car turned out to be borrowed.
Q he drank my coffee and admired my roof
Q never pay the whole sum before a single screw is turned
Q I am ashamed, and that is why I speak about it
Q the trail leads through five countries and one barber shop
R a prosecutor; a victim and {job}; a consumer adviser; head of the heating guild
X charges are expected in {month}.
X a meeting for victims is arranged for {day}.
X the missing money is being traced.
S homeowners in {county1} were cheated.
S {v} victims lost ${m} million.
S the fraud lasted {d} months.
@ repair_cafe
# r=200..3000..100 p=52..88 v=8..60
L toasters, trousers and tired radios were brought back to life in {town1} on {day1} as a repair
  club marked its birthday.
L nothing gets thrown away in a room in {town1} where, on {day1}, hobby mechanics met for a round
  of mending.
L bring it, mend it, take it home: the repair club of {town1} drew a crowd on {day1}.
F it has repaired {r} objects so far, with success in {p} percent of cases.
F {v} volunteers take turns at the benches.
F payment is whatever fits into a jam jar.
D a music box that had been silent for years made its owner weep.
D makers glue their devices shut, a habit that drives the menders mad.
D a dealer in new appliances donates spare parts, oddly enough.
Q most of the time it is only a fuse or a crumb
Q I came with a lamp and left with a friend
Q repairing is cheaper than a psychiatrist
Q a law should force them to sell screws that fit
R founder of the club; a visitor and {job}; a retired watchmaker; a waste expert
X the next meeting is on {day} at the {place}.
X sewing lessons begin in {month}.
X a law on spare parts is due in {month}.
S a repair club in {town1} marked a success.
S it has repaired {r} objects.
S {p} percent of attempts succeed.
"""
