"""Events of the three held-out splits (form: see event_type.py)."""

from __future__ import annotations

DEVELOPMENT = """
@ heat_wave
# t=96..118 d=4..19 n=20..400..10
L a heat wave [gripped|tired] {county1} on {day1}, and {people} [fled to lakes|stayed indoors].
L [streets|parks] in {town1} were empty on {day1} as temperatures [broke|neared] a record.
F it was {t} degrees in {town1}, on the {d}th day without rain.
F hospitals [treated|admitted] {n} people.
D power [failed|was rationed], because {reason}.
D pools stayed open {time}, and the {place} [offered|gave out] water.
Q you can fry an egg on my windowsill
Q please look after your neighbors
R a doctor in {town1}; a {job} working outdoors; head of the weather office
X cooler air should arrive on {day}.
X a water ban [may follow|starts] on {day}.
S it was {t} degrees in {town1}.
S {n} people needed treatment.
S the heat came on {day1}.
@ stamp_auction
# m=2..60 b=3..19 y=30..190
L a [painting|violin|stamp|letter|necklace] was sold at auction in {town1} on {day1} for a {adj}
  sum.
L bidders in {town1} [fought|waited] for a {adj} object on {day1}.
F the hammer fell at ${m} million after {b} minutes.
F the piece is {y} years old and [belonged to a {job}|hung in a kitchen].
D the buyer, [perhaps from {town}|unknown], bid by phone.
D experts {adv} {did} its origin, as {reason}.
Q the room went so silent I heard my watch
Q money like that belongs in schools
R the auctioneer; an art historian; the seller's lawyer
X the piece goes to a museum in {month}.
X a second sale is set for {month}.
S an object brought ${m} million in {town1}.
S it is {y} years old.
S bidding took {b} minutes.
@ water_pollution
# n=3..80 f=12..90 w=2..9
L {people} in {town1} were told on {day1} to boil their water after [oil|bacteria|paint]
  [entered|was found in] the supply.
L a leak at {firm1} [poisoned|dirtied] a stream near {town1}, officials said on {day1}.
F {n},000 households are affected.
F {f},000 gallons [escaped|leaked], and cleaning takes {w} weeks.
D dead fish [floated|washed up] near the {place}.
D tests were [late|repeated], since {reason}.
Q I smelled it before I saw it
Q we take full responsibility
R a chemist at the health office; a spokesman for {firm1}; a {job} and mother of two
X new tests are due on {day}.
X a fine will be set in {month}.
S {n},000 households in {town1} must boil water.
S {f},000 gallons leaked.
S cleaning takes {w} weeks.
@ chess_prodigy
# a=9..15 g=5..40 m=30..95
L {first1} {surname1}, a pupil from {town1}, [won|stunned experts at] the national chess title on
  {day1}.
L at an age when others play tag, {first1} {surname1} of {town1} became chess champion on {day1}.
F the {a}-year-old won {g} games [in a row|this season].
F the final lasted {m} moves.
D the trainer, a {job}, [found the talent|met the child] at the {place}.
D opponents were {feel}, for {reason}.
Q I only look at the pawns first
Q I have lost to the future, and it is polite
R the champion; the defeated finalist; a trainer
X the next event is in {month}.
X the school plans a party on {day}.
S {first1} {surname1} of {town1} is chess champion.
S the {a}-year-old won {g} games.
S the final took {m} moves.
"""

CALIBRATION = """
@ library_saved
# s=3..60 m=110..960..10 y=40..160
L the library of {town1} [will stay open|was saved] after {people} [collected|raised] money, its
  friends said on {day1}.
L readers in {town1} [cheered|wept] on {day1} when the closing of their library was called off.
F {s},000 people [signed|gave], and ${m},000 came together.
F the house is {y} years old.
D the town had planned to [sell|close] it because {reason}.
D a {job} [read aloud|slept] on the steps in {weather}.
Q I learned to read in that corner
Q one cannot run a town on bake sales
R a librarian; the town treasurer; a {job} who led the campaign
X it reopens in {month}.
X the council meets again on {day}.
S the library of {town1} stays open.
S ${m},000 was raised.
S {s},000 people helped.
@ ship_aground
# l=200..980..10 c=11..40 b=3..90
L a cargo ship ran aground off {town1} on {day1}, [blocking the harbor|spilling crates].
L [tugs|crews] tried on {day1} to free a freighter stuck near {town1}.
F the ship is {l} feet long and has a crew of {c}.
F {b} [crates|containers] fell into the sea.
D {weather} [delayed|hindered] divers, and {reason}.
D children [gathered|carried] shoes and toys from the beach near the {place}.
Q she sits on the sand like a whale
Q no oil has been lost, and we mean to keep it so
R the harbor master; the captain; a {job} on the beach
X the next high tide is on {day}.
X an inquiry will report in {month}.
S a {l}-foot ship is stuck off {town1}.
S {b} containers fell overboard.
S the crew numbers {c}.
@ minimum_wage
# w=11..24 n=20..480..10 v=50..99
L lawmakers in {county1} [raised|agreed to raise] the minimum wage on {day1}.
L low-paid workers in {county1} will earn more, parliament decided on {day1}.
F the new rate is ${w} an hour, and {n},000 people benefit.
F {v} members voted for it.
D firms {adv} {did} the law, warning that {reason}.
D cooks and cleaners [cheered|embraced] at the {place}.
Q that is shoes for my children
Q small shops will close, and they will not come back
R the labor minister; an owner of three cafes; a cleaner in {town}
X it takes effect in {month}.
X a court may still decide in {month}.
S the minimum wage in {county1} rises to ${w}.
S {n},000 people benefit.
S {v} members voted in favor.
@ wolf_sighting
# n=2..9 s=6..70 m=4..40
L wolves have returned to {county1}, rangers [confirmed|said] on {day1} after [tracks|pictures]
  were found near {town1}.
L a camera near {town1} [caught|filmed] what rangers on {day1} called a {adj} return.
F at least {n} animals [live|hunt] there.
F {s} sheep [were killed|died] since spring, within {m} miles.
D farmers were {feel} because {reason}.
D {people} walk their dogs near the {place} only in groups.
Q they were here before us
Q I count my flock every hour of the night
R a ranger; a shepherd near {town1}; a biologist from {town}
X a hearing is set for {day}.
X fences will be paid for from {month}.
S wolves are back near {town1}.
S at least {n} animals live there.
S {s} sheep were killed.
"""

EVALUATION = """
@ tunnel_opened
# k=2..38 y=4..19 m=2..9
L a tunnel between {town1} and {town2} [opened|was opened] on {day1}, [with a brass band|after a
  {adj} wait].
L the first train [rolled|passed] under the mountain from {town1} to {town2} on {day1}.
F the tunnel is {k} miles long and took {y} years to build.
F it cost ${m} billion.
D workers [met|fought] hot water and soft rock, and {reason}.
D villages [celebrated|hung flags], though {people} {adv} {did} the noise.
Q my father dug here, and now I drive through
Q for that money one could have bought the mountain
R the chief engineer; a train driver; a {job} from {town2}
X regular traffic begins in {month}.
X a second tube may follow by {month}.
S a tunnel links {town1} and {town2}.
S it is {k} miles long.
S it cost ${m} billion and took {y} years.
@ film_award
# n=2..11 b=2..95 w=8..60
L a [low-budget|silent|first] film by {first1} {surname1} won the main prize in {town1} on {day1}.
L {first1} {surname1}, once a {job1}, [took|received] the top film award in {town1} on {day1}.
F it was nominated for {n} prizes and cost ${b},000.
F shooting took {w} days.
D the jury [argued|sat] {time}, because {reason}.
D critics {adv} {did} the {adj} last scene.
Q we shot it in my aunt's kitchen
Q I have never laughed so sadly
R the winning director; head of the jury; an actor and {job}
X it opens in cinemas in {month}.
X a sequel is not planned before {month}.
S {first1} {surname1} won a film prize in {town1}.
S the film cost ${b},000.
S it was shot in {w} days.
@ power_plant
# u=2..9 m=20..900..10 h=30..700..10
L {firm1} plans a [wind park|solar field|dam|tidal plant] near {town1}, it [said|announced] on
  {day1}.
L a {adj} energy project near {town1} [won approval|was approved] on {day1}.
F it will [supply|power] {h},000 homes and cost ${m} million.
F building takes {u} years.
D [fishermen|hikers|bird lovers] {adv} {did} it, as {reason}.
D {people} will [pay less|own shares], the firm promised at the {place}.
Q the wind sends no bill
Q they drew this map without ever walking here
R project leader at {firm1}; a birdwatcher; the energy minister of {county1}
X the first stone is laid in {month}.
X objections can be filed until {month}.
S {firm1} builds a power plant near {town1}.
S it supplies {h},000 homes.
S it costs ${m} million.
@ school_fire_drill
# e=120..980..10 t=2..19 c=3..40
L a [fire|gas leak|strange smell] emptied a school in {town1} on {day1}, [but no child was
  seriously hurt|to the shock of parents].
L pupils in {town1} [ran|walked] into the yard on {day1} as smoke filled their school.
F {e} children left the building within {t} minutes.
F {c} were [checked|examined] by doctors.
D a [toaster|cable|heater] [is suspected|was to blame], and {reason}.
D parents [waited at|hurried to] the {place} in {weather}.
Q they held hands and sang, just as we practiced
Q I counted them three times and then I cried
R the headteacher; a fire officer; a {job} whose son attends the school
X lessons resume on {day}.
X a report is due in {month}.
S a school in {town1} was emptied.
S {e} children left within {t} minutes.
S {c} of them saw a doctor.
"""
