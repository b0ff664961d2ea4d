"""More train events: trade, work, money and transport (form: see event_type.py)."""

from __future__ import annotations

TRADE = """
@ four_day_week
# s=40..900..10 p=2..19 m=6..18
L staff at {firm1} in {town1} will keep Fridays free without losing pay, it emerged on {day1}.
L a shorter week is here to stay at {firm1} in {town1}, whose managers judged a trial on {day1}.
L could four days be enough? {firm1} of {town1} answered yes on {day1}.
F the trial took in {s} employees over {m} months.
F output rose by {p} percent, while sick days went down.
F meetings longer than half an hour were abolished.
D some used the extra day for gardens or grandparents, others for a second job.
D customers who telephoned on a Friday were not amused at first.
D shift workers had to be hired in the warehouse, which made the idea dearer.
Q I finally know what my children do after school
Q nobody was lazy before, we were merely interrupted
Q what suits an office does not suit a bakery
Q my Thursdays are murder, but I sleep on it for three days
R head of personnel; an employee and father of three; an economist; a customer who runs a kiosk
X two suppliers want to copy the model in {month}.
X a final review is set for {month}.
X the works council will sign the contract on {day}.
S {firm1} introduces a four-day week.
S {s} employees tried it for {m} months.
S output rose by {p} percent.
@ interest_rates
# r=2..8 q=9..95 y=2..15
L the central bank [raised|cut] its main rate on {day1}, and borrowers in {town1} reached for
  their calculators.
L loans will change in price after the governors of the central bank met in {town1} on {day1}.
L with one sentence read out in {town1} on {day1}, the central bank surprised savers and builders
  alike.
F the rate now stands at {r}.5 percent, a level last seen {y} years ago.
F the decision moved payments on an average home loan by ${q} a month.
F two governors had voted against it.
D traders had bet on the opposite and lost a good deal of money before lunch.
D a furniture dealer put off building a new hall.
D pensioners with savings books saw things differently from young couples.
Q we do not set rates to be loved
Q I signed last week, one should never believe the radio
Q prices follow slowly, like a cow after a bucket
Q our builders have drawn up the plans three times now
R governor of the bank; a mortgage adviser; a {job} with a home loan; chief economist of {firm}
X the governors meet again in {month}.
X banks are expected to follow by {day}.
X figures on prices come out on {day}.
S the central bank changed its main rate on {day1}.
S it stands at {r}.5 percent.
S monthly payments on home loans move by ${q}.
@ bread_prices
# p=6..38 w=3..7 b=20..400..10
L a loaf costs more in {town1} since {day1}, and bakers say they had no choice.
L bakers in {town1} changed the price tags on {day1}, apologizing to each customer.
L first it was butter, then coffee, and on {day1} bread became dearer in {town1}.
F it went up by {p} percent to ${w}.20.
F {b} bakeries in the area took the step together.
F flour, ovens and rent are all to blame, their guild explained.
D an authority is checking whether they agreed on it in secret.
D one baker keeps the old price for anyone past seventy.
D sales of flour for home use have doubled.
Q I start at two in the night and still pay to work
Q we now freeze every crust
Q the farmer gets pennies of that, somebody else gets the rest
Q bread is the last thing people should have to count
R a master baker; a shopper and {job}; a miller; a consumer lawyer
X cheaper rolls from {town} are already in the shops.
X the guild expects no further rise before {month}.
X the authority reports in {month}.
S bread is dearer in {town1}.
S a loaf rose by {p} percent.
S {b} bakeries took part.
@ port_expansion
# m=60..900..10 c=2..19 j=200..900..10
L cranes taller than the cathedral arrived in the port of {town1} on {day1}.
L the port of {town1} wants to double in size, and on {day1} its owners signed the contracts.
L bigger ships will soon moor at {town1}, where work on a new quay was set in motion on {day1}.
F the quay costs ${m} million and should handle {c} million containers a year.
F it is to create {j} jobs.
F sand will be dredged from the river for years.
D anglers argue that the mud will smother the spawning grounds.
D the rival harbor of {town} had offered lower fees.
D a row of captains' houses must make room for a railway track.
Q a port that does not grow becomes a museum
Q we hear hammers by day and reversing trucks by night
Q these giants bring bananas and broken asphalt
Q I have applied for a job in the cabin of the crane
R director of the port; a truck driver; a {job} living by the docks; a shipping agent
X the first large ship is due in {month}.
X residents are invited to a hearing on {day}.
X dredging pauses in spring because of the fish.
S the port of {town1} is growing.
S a new quay costs ${m} million.
S it should create {j} jobs.
@ tariff_dispute
# p=10..60..5 f=12..300 m=3..80
L a new duty on imported [tiles|wine|screws|toys|shoes] has left warehouses in {town1} full,
  traders said on {day1}.
L customs officers in {town1} began charging more on {day1}, the latest turn in a quarrel between
  two governments.
L what was agreed over dinner by ministers hit the traders of {town1} on {day1}: a higher tariff.
F the duty is {p} percent and concerns {f} companies.
F they expect extra costs of ${m} million a year.
F goods already at sea are not exempt.
D one importer had thirty crates unpacked to prove they were from elsewhere.
D producers at home welcome the wall, yet buy their machines abroad.
D smugglers, so the joke goes, are hiring.
Q I sell shoes, I did not start this quarrel
Q each side shoots itself in the foot and calls it victory
Q finally we can compete with those prices
Q in the end the bill lands on the kitchen table
R an importer; a customs officer; owner of a {town} workshop; a trade lawyer
X the other side threatens to answer in {month}.
X negotiators meet in {town} on {day}.
X traders plan to go to court by {month}.
S traders in {town1} face a new duty.
S it is {p} percent and hits {f} companies.
S it may cost ${m} million a year.
@ shop_closing
# y=40..180 e=4..70 r=12..90
L the oldest department store in {town1} will shut its doors, the owners told {people} on {day1}.
L after generations of hats, gloves and wedding lists, a family shop in {town1} gave up on {day1}.
L a handwritten note in the window told shoppers in {town1} on {day1} that an era was over.
F it had been in business for {y} years and employs {e}.
F sales had shrunk by {r} percent as customers went online.
F everything must go, even the brass lift.
D an old customer brought back the box in which her first shoes were sold.
D the landlord had asked for a higher rent just as the roof began to leak.
D young designers would like to share the ground floor.
Q people came in to try things on and then ordered them elsewhere
Q my mother bought her ring here and so did I
Q a street needs a heart, not another phone shop
Q I dressed three mayors and a bishop
R the owner; a saleswoman; head of the traders' club; a longtime customer and {job}
X the clearance sale starts on {day}.
X the council seeks a new tenant for {month}.
X the clock on the front will be kept.
S an old store in {town1} is closing.
S it was in business for {y} years.
S {e} people work there.
@ workers_buyout
# e=12..190 m=2..30 s=2..20
L workers in {town1} became their own bosses on {day1} by buying the
  [glassworks|brewery|shipyard|print shop] where they are employed.
L when no heir could be found, the staff of a workshop in {town1} bought it, as became official on
  {day1}.
L the old owner handed the keys to the night shift in {town1} on {day1}.
F {e} employees put in ${s},000 each.
F a cooperative bank lent another ${m} million.
F every member has one vote, from apprentice to engineer.
D a fund from abroad had bid more, but intended to sell the machines.
D the first decision concerned the coffee, and took an hour.
D similar attempts have failed where members paid themselves too much.
Q I have complained about the boss for years, now I must complain about myself
Q I wanted to see the lights stay on
Q democracy on the shop floor is slow and loud and ours
Q we would lend to them again tomorrow
R the new chairwoman; the former owner; a banker; an apprentice
X the first annual meeting is in {month}.
X a sign with the new name goes up on {day}.
X new machines must wait until {month}.
S workers in {town1} bought their workplace.
S {e} employees put in ${s},000 each.
S a bank lent ${m} million.
@ apprentice_shortage
# v=120..980..10 p=8..40 f=30..300..10
L workshops in {county1} are desperate for apprentices, the chamber of crafts reported on {day1}.
L roofers, plumbers and bakers from {county1} courted school leavers at a fair on {day1}.
L free driving lessons, a phone, even a moped: employers in {county1} were offering all sorts of
  things on {day1} to find trainees.
F {v} places are vacant, {p} percent more than last year.
F {f} firms took part in the survey.
F many parents would rather see their children at university.
D a roofer let visitors nail slates and found two recruits that way.
D buses do not run early enough for those who begin work at six.
D a master of eighty still climbs ladders since nobody follows him.
Q a leaking pipe will not be mended by a seminar
Q I like to see in the evening what I have done
Q they ask about holidays before they ask about tools
Q pay them decently and they will come
R president of the chamber; an apprentice plumber; a careers teacher; a carpenter looking for
  successors
X the next fair takes place in {month}.
X a hostel for trainees is being planned in {town}.
X applications are welcome until {day}.
S {county1} lacks apprentices.
S {v} places are vacant.
S that is {p} percent more than last year.
@ village_bank
# k=4..40 y=30..140 d=3..40
L the last bank counter in {town1} closed on {day1}, and a van will come instead.
L from {day1} on, {people} in {town1} must wait for a bank on wheels to withdraw cash.
L pensioners in {town1} stood in line on {day1} to say farewell to their bank branch.
F it had served the place for {y} years.
F the nearest branch is {k} miles away.
F only {d} customers a day had come to the counter, the bank said.
D the vault is to become a wine cellar, or a room for the youth club.
D two shops now give cash to those who buy something.
D a class in online banking drew more grandmothers than chairs.
Q she knew my account better than I did
Q the numbers left us no choice
Q I do not trust a bank that drives off
Q we could teach anyone to use a tablet in an afternoon
R the branch manager; a {job} and customer; the village mayor; a spokeswoman for the bank
X the van stops at the {place} every {day}.
X signatures against the move are being collected until {month}.
X the building goes on sale in {month}.
S {town1} has lost its bank branch.
S it was there for {y} years.
S the nearest one is {k} miles away.
@ counterfeit_money
# n=30..900..10 v=20..100..10 s=4..50
L false banknotes have turned up in {town1}, police warned on {day1}.
L a cashier in {town1} noticed on {day1} that a note felt like wallpaper, and uncovered a fraud.
L shopkeepers in {town1} were holding notes to the light on {day1} after forgers had made the
  rounds.
F {n} forged bills of ${v} were found in {s} shops.
F the thread is printed on, and the ink smears.
F they were mostly passed in the evening rush.
D a church found three of them in the collection box.
D a printer with a color stain was seized in a garage in {town}.
D a boy was given one as change at a fair.
Q the president on it has a squint
Q tilt it, feel it, and if in doubt call us
Q I lost a day's takings because I was polite
Q these were not masters, but in bad light they will do
R a fraud detective; a cashier; an expert from the mint; the owner of a flower stall
X lamps to check notes are being handed out on {day}.
X two suspects will be questioned on {day}.
X a course for shop staff is offered in {month}.
S forged banknotes turned up in {town1}.
S {n} bills of ${v} were found.
S {s} shops were hit.
"""
