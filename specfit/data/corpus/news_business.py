"""Train events: business (form: see event_type.py)."""

from __future__ import annotations

BUSINESS = """
@ merger
# b=2..90 j=3..40 s=2..30
L {firm1} [will buy|agreed to take over|is to merge with] its rival {firm2}[, the companies
  announced on {day1}| in a {adj} deal, both said on {day1}].
L in a {adj} step, {firm1} and {firm2} on {day1} [revealed|confirmed] that they will become one
  company.
F the deal [is worth|values the target at] ${b} billion.
F the new company will have {j},000 employees [in {s} countries|at {s} sites].
D analysts {adv} {did} the news, since {reason}.
D talks [began|nearly failed] in {month} over {want}.
Q together we can do what neither could do alone
Q workers must not pay the price of this wedding
R chief executive of {firm1}; a union leader; an analyst at {firm}
X regulators must approve the deal by {month}.
X shareholders vote in {month}.
S {firm1} and {firm2} agree to merge.
S the deal is worth ${b} billion.
S the company will employ {j},000 people.
@ recall
# n=3..900 c=3..60 y=2..9
L {firm1} is recalling [cars|heaters|toys|baby food|bicycle helmets|phone batteries] because they
  [can catch fire|may break|contain sharp parts], it said on {day1}.
L {people} should stop using a popular product of {firm1}, authorities warned on {day1}.
F the recall [covers|concerns] {n},000 units sold over {y} years.
F {c} complaints [had reached the firm|were received], [one of them from {town1}|some with
  photos].
D the fault [was traced|goes back] to a supplier in {town}, where {reason}.
D shops [removed|took] the goods from shelves [{time}|within hours].
Q we are sorry and will replace every single unit
Q the company knew of it for months and stayed silent
R head of quality at {firm1}; a consumer advocate; a {job} and customer
X customers can ask for a refund until {month}.
X an inquiry will start on {day}.
S {firm1} recalls {n},000 units.
S {c} complaints were made.
S the goods were sold over {y} years.
@ strike
# n=2..95 p=3..14 d=2..12
L [bus drivers|dock workers|nurses|bakers|pilots|miners] in {town1} [walked out|went on
  strike|stopped work] on {day1} [over pay|in a row about hours].
L a strike [paralyzed|slowed] {town1} on {day1} as {people} [demanded|asked for] {want}.
F about {n}00 workers [joined|took part], the union said.
F they want {p} percent more pay[, while {firm1} offers half of that|].
F the [strike|walkout] is to last {d} days.
D pickets [stood|sang|lit fires] at the {place} in {weather}.
D commuters [walked|shared cars|stayed home], and {reason}.
Q we keep this town running, and we cannot pay our rent
Q these demands would ruin the company
R a union secretary; a manager of {firm1}; a stranded {job}
X talks resume on {day}.
X a mediator from {town} may be called in.
S {n}00 workers strike in {town1}.
S they demand {p} percent more pay.
S the strike should last {d} days.
@ factory_opening
# j=60..950..10 m=12..480 a=3..60
L {firm1} [opened|inaugurated] a plant for [solar panels|frozen food|medicine|electric
  buses|paper|microchips] in {town1} on {day1}.
L [with music and speeches|under {weather}], a new {firm1} factory started work in {town1} on
  {day1}.
F it [employs|gives work to] {j} people[, many of them from {town2}|].
F the firm invested ${m} million in the site, which covers {a} acres.
D the land [was a rail yard|lay empty] for years, because {reason}.
D [environmental groups|{people}] had {adv} {did} the project.
Q I sent off a hundred letters before this one worked out
Q young people no longer need to leave {town1}
R plant manager; the mayor of {town1}; a newly hired {job}
X a second hall [may follow|is planned] in {month}.
X production reaches full speed in {month}.
S {firm1} opens a factory in {town1}.
S the plant employs {j} people.
S ${m} million was invested.
@ layoffs
# j=150..4900..50 p=4..38 q=2..9
L {firm1} will [cut|shed] jobs [at its {town1} site|in {county1}], it [told staff|announced] on
  {day1}.
L {people} in {town1} [reacted|were {feel}] on {day1} when {firm1} announced deep cuts.
F {j} positions [will disappear|are to go] within {q} years.
F sales [fell|dropped] {p} percent [last year|since {month}], the company reported.
D [buyers|investors] had {adv} {did} the firm, as {reason}.
D many employees [learned it by email|heard it on the radio|met at the {place}].
Q I gave this place half my life
Q without this step, the whole firm would be at risk
R finance chief of {firm1}; a worker at the plant; the minister for labor
X unions plan a march on {day}.
X the firm promised training and help.
S {firm1} cuts {j} jobs.
S sales fell {p} percent.
S the cuts come within {q} years.
@ new_product
# p=90..1900..10 h=8..96 n=2..60
L {firm1} [unveiled|presented|launched] a [foldable phone|electric bike|home robot|hearing
  aid|kitchen machine] in {town1} on {day1}.
L after a {adj} wait, {firm1} showed its newest device in {town1} on {day1}.
F it costs ${p} and [runs|works] for {h} hours without charging.
F {n},000 [orders|reservations] came in [within a day|before the show ended].
D testers were {feel}, although the screen looked {adj}.
D rival {firm} [is working on|plans] something similar, even if {reason}.
Q we threw away nine versions before this one
Q it is pretty, but who needs it
R chief designer at {firm1}; a technology reviewer; a {job} in the queue
X the device goes on sale in {month}.
X a cheaper version may follow in {month}.
S {firm1} shows a new device in {town1}.
S it costs ${p}.
S {n},000 orders came in.
@ harvest
# p=6..45 t=12..480 f=20..900..10
L farmers in {county1} [expect|reported] a [poor|rich|late|record]
  [wheat|apple|grape|potato|olive|barley] harvest, their association said on {day1}.
L {weather} [shaped|decided] this year's harvest around {town1}, farmers said on {day1}.
F the crop is {p} percent [above|below] the average[ of the last decade|].
F {f} farms [brought in|delivered] {t},000 tons.
D [prices|wages] may [rise|fall], because {reason}.
D [insects|a late frost|too few pickers] [troubled|worried] growers near {town}.
Q the soil remembers every dry week
Q you cannot argue with the sky
R president of the farmers' association; a grower near {town1}; a trader at {firm}
X the last fields will be cut in {month}.
X a market report follows in {month}.
S farmers in {county1} report on the harvest.
S {f} farms delivered {t},000 tons.
S that differs from the average by {p} percent.
@ bank_hack
# n=20..900..10 h=3..40 m=2..70
L hackers [attacked|broke into] the computers of {firm1}, the company [admitted|confirmed] on
  {day1}.
L a cyberattack on {firm1} [left|kept] {people} [without money|waiting] on {day1}.
F data of {n},000 customers [was copied|leaked].
F systems were down for {h} hours, and the damage is put at ${m} million.
D the intruders used [a stolen password|an old printer|a fake invoice], after {reason}.
D [police in {town1}|experts from {firm}] are on the case.
Q we closed the door within minutes, but it had been open for weeks
Q my card was refused at the checkout, and I felt like a thief
R security chief of {firm1}; a customer and {job}; a researcher in {town}
X customers should change passwords by {day}.
X a report goes to parliament in {month}.
S hackers hit {firm1}.
S data of {n},000 customers leaked.
S the damage is ${m} million.
@ house_prices
# p=3..24 a=110..890..10 n=40..900..10
L house prices in {town1} [rose|climbed|fell|slipped] again, [a study|figures] [showed|published]
  on {day1}.
L buying a home in {county1} [became|is] [harder|easier], according to numbers from {day1}.
F prices changed by {p} percent in a year.
F a typical home now costs ${a},000, and {n} [are for sale|stand empty].
D banks {adv} {did} the market, while {people} asked for {want}.
D [rents|loans] [rose|fell] as well, partly because {reason}.
Q we looked at thirty flats and got none
Q a market like this cannot last
R an estate agent in {town1}; a housing researcher; a {job} looking for a flat
X new figures come out in {month}.
X the town will debate a building plan on {day}.
S house prices in {town1} changed by {p} percent.
S a typical home costs ${a},000.
S {n} homes have no buyer.
@ airline_route
# n=2..14 f=49..690..10 s=70..240..10
L {firm1} will [fly|offer flights] from {town1} to {town2}, [the airport announced|it said] on
  {day1}.
L a new air route [links|connects] {town1} with {town2}, and {people} were {feel} on {day1}.
F there will be {n} flights a week with {s} seats each.
F tickets start at ${f}[, bags not included|].
D neighbors {adv} {did} the noise, and {reason}.
D the runway had been [closed|repaired] since {month}.
Q my grandchildren are suddenly close
Q more planes mean less sleep
R director of the airport; a resident below the flight path; a manager of {firm1}
X the first plane leaves in {month}.
X a link to {town} may come next.
S {firm1} connects {town1} and {town2}.
S there are {n} flights a week.
S tickets start at ${f}.
"""
