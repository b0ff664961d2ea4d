"""More train events: nature, farming, sea and mountains (form: see event_type.py)."""

from __future__ import annotations

NATURE_2 = """
@ locust_swarm
# m=2..40 f=12..300 p=20..80
L a swarm of locusts darkened the fields of {county1} on {day1}, eating everything green in its
  path.
L farmers banged pots and lit tires on {day1} to drive insects out of {county1}.
L with a noise like rain on dry leaves, locusts settled on crops in {county1} on {day1}.
F the swarm was {m} miles long.
F {f} farms lost up to {p} percent of their plants.
F it moved on when the wind turned.
D ducks from a neighboring farm ate until they could not walk.
D a rainy spring in the desert had let the eggs hatch in huge numbers.
D trains slipped on rails greasy with crushed wings.
Q they ate the onions out of the ground and the shirt off the line
Q spraying helps only before they can fly
Q we hear them chew
Q my seed for next year is gone as well
R a crop adviser; a farmer; an insect expert; a {job} driving through the swarm
X planes will spray breeding grounds from {day}.
X food aid has been requested for {month}.
X a warning has been issued for the area around {town}.
S locusts ate crops in {county1}.
S {f} farms lost up to {p} percent.
S the swarm was {m} miles long.
@ cheese_dairy
# c=12..90 y=3..40 p=2..30
L a small dairy in {town1} took the national prize for its [blue|goat's|smoked|mountain] cheese on
  {day1}.
L the best cheese in the country ripens in an old air-raid shelter in {town1}, judges found on
  {day1}.
L {first} and {first} {surname1} milked their herd as usual on {day1}, and then learned that their
  dairy in {town1} had won.
F it keeps {c} animals and makes {p} tons of cheese a year.
F the recipe took {y} years to perfect.
F orders now arrive faster than wheels can ripen.
D the secret, says the family, lies in herbs that grow on a slope too steep for machines.
D supermarkets have called, but were told to wait.
D one judge asked for a third piece, against the rules.
Q good cheese is milk that was left in peace
Q we nearly sold the herd last winter
Q people drive two hours and then complain about our gravel
Q there is thyme in it, and a great deal of time
R the cheese maker; a member of the jury; a neighbor who supplies hay; a food writer
X a shop in the old stable will open in {month}.
X the prize will be handed over on {day}.
X a second cellar is being cleared.
S a dairy in {town1} won a cheese prize.
S it makes {p} tons a year.
S the recipe took {y} years.
@ giant_pumpkin
# w=600..2400..20 d=80..150 g=20..90
L a pumpkin the size of a small car was rolled onto the scales in {town1} on {day1}.
L {first1} {surname1}, a {job1}, needed a forklift to bring a pumpkin to the fair in {town1} on
  {day1}.
L growers with muddy boots held their breath in {town1} on {day1} as the needle of the scales
  climbed.
F the winner weighed {w} pounds and had grown for {d} days.
F it drank {g} gallons of water daily.
F a blanket kept it warm at night.
D seeds of champions are traded like jewels, and stored as carefully.
D last year's favorite split two days before the weighing.
D runner-up was a squash shaped, many thought, like the mayor.
Q I talk to it, my family says too much
Q on a good day you can hear it grow
Q it tastes of nothing, but who cares
Q the trick is old manure and no vacations
R the winning grower; a judge; president of the garden club; a {job} in the crowd
X it will be carved into a boat on {day}.
X its seeds will be given away in {month}.
X the record book has been informed.
S a giant pumpkin won in {town1}.
S it weighed {w} pounds.
S it grew for {d} days and drank {g} gallons daily.
@ oyster_farm
# n=2..40 y=2..8 f=3..50
L fishermen who once caught cod are now planting oysters in the bay of {town1}, they showed on
  {day1}.
L crates of tiny oysters were lowered into the sea off {town1} on {day1}.
L a bay that had been given up for dead came back into use on {day1}, when an oyster farm started
  off {town1}.
F {n} million shells were set out by {f} families.
F the first can be eaten in {y} years.
F a single oyster cleans fifty gallons of water a day.
D sea birds learned within a week how to open the crates.
D a wave of disease in {town} had wiped out an earlier stock.
D yacht owners grumble about the buoys, which spoil their route.
Q my father would have laughed, then asked for lemon
Q it is farming, except that your field moves twice a day
Q the water is clearer than when I was a boy
Q you need strong hands and no hurry
R a fisherman turned farmer; a marine scientist; a restaurant cook; chair of the sailing club
X a tasting is planned for {month}.
X water samples are taken every {day}.
X more families may join in {month}.
S oysters are being farmed off {town1}.
S {f} families set out {n} million shells.
S the first are ready in {y} years.
@ glacier_melt
# f=20..300..5 y=12..90 t=2..40
L the glacier above {town1} is dying, and on {day1} a group of hikers held a funeral for it.
L white sheets were spread on the ice above {town1} on {day1} to slow its melting.
L hikers above {town1} came across [an old ski|a rusty ladder|a leather boot] on {day1}, set free
  by the shrinking glacier.
F it lost {f} feet in length within a year.
F in {y} years it will have disappeared, according to measurements.
F the ice is {t} yards thinner than when the first hut was built.
D guides have had to move the path twice since spring.
D a lake has formed at its edge, which worries the valley below.
D an aging photograph in the inn shows ice where cows graze today.
Q as a child I could step onto it from the terrace
Q the sheets buy time for one slope, not for the planet
Q it cracks at night like a ship
Q we still sell ice axes, mostly as souvenirs
R a glacier researcher; a mountain guide; the innkeeper; a {job} on the hike
X a pump will drain part of the lake by {month}.
X new measurements are due in {month}.
X a plaque will mark where the ice once ended.
S the glacier above {town1} is melting.
S it lost {f} feet in a year.
S it may be gone in {y} years.
@ tree_planting
# n=3..90 v=40..900..10 k=5..22
L spades in hand, {people} from {town1} planted a forest on a former [coal heap|parking lot|dump]
  on {day1}.
L a bare hill behind {town1} was covered with young trees on {day1}.
L although {weather} had been forecast, a crowd came to plant trees in {town1} on {day1}.
F {v} helpers put {n},000 trees into the ground.
F {k} kinds were chosen, so that no single pest can kill them all.
F each child tied a name to a stem.
D a similar wood in {town} dried up because nobody had watered it.
D deer must be kept out by a fence that cost more than the trees.
D the oldest helper, aged ninety, planted an oak.
Q I shall never sit in its shade, which is exactly the point
Q planting is the easy day, the next ten years are the work
Q my tree is called Bruno and he is taller than me
Q the soil was full of bricks, but worms are moving in
R a forester; a pupil; the oldest helper; organizer of the day
X watering teams have been arranged until {month}.
X the first path will be laid in {month}.
X another slope follows next year.
S a forest was planted in {town1}.
S {v} helpers planted {n},000 trees.
S {k} kinds of tree were chosen.
@ lighthouse_keeper
# y=12..48 s=90..300..5 h=60..190
L the last lighthouse keeper on the coast of {county1} climbed the stairs for the final time on
  {day1}.
L {first1} {surname1} switched off the radio, locked the door and rowed ashore in {county1} on
  {day1}: the lighthouse now runs by itself.
L a computer took over the old lighthouse off {county1} on {day1}.
F the keeper had lived there for {y} years.
F it is {h} feet high and has {s} steps.
F its lamp can be seen from twenty miles away.
D letters came by boat every other week, when the sea allowed it.
D fishermen sounded their horns in farewell.
D inside, a piano was left behind that had been hoisted up by rope.
Q you get used to storms, but not to supermarkets
Q a machine never falls asleep, and never notices a flare either
Q the lamp was my clock and my neighbor
Q I will miss the steps least of all
R the keeper; a fisherman; an official of the coast guard; a historian of the sea
X visitors may climb up from {month}.
X the rooms will be let to painters.
X a technician will call twice a year.
S the last lighthouse keeper of {county1} retired.
S the keeper lived there for {y} years.
S the tower is {h} feet high.
@ fishing_quota
# p=10..60 b=12..200 t=2..80
L fishing boats in {town1} will have to leave part of the [herring|cod|crab|sardine] in the sea,
  ministers ruled on {day1}.
L crews burned old nets on the quay of {town1} on {day1} in protest at smaller catches.
L so few fish are left off {town1} that the allowed catch was slashed on {day1}.
F the limit falls by {p} percent to {t},000 tons.
F {b} boats are affected.
F owners who scrap a boat will be paid.
D young fish were found in only one of ten test nets.
D big trawlers from {town}, say locals, took too much for too long.
D at the auction hall, prices jumped within the hour.
Q my boat costs money even when it sleeps
Q if we do not stop now, there will be nothing left to argue about
Q the sea is full, they just measure in the wrong place
Q I would not advise my son to buy nets
R a skipper; a fish scientist; the fisheries minister; a fishmonger
X the limit is valid from {month}.
X boats plan to block the port on {day}.
X new counts at sea begin in {month}.
S boats in {town1} may catch less fish.
S the limit falls by {p} percent.
S {b} boats are affected.
@ mountain_hut
# h=5..11 b=12..90 c=2..12
L a new mountain hut above {town1} was flown in piece by piece and opened on {day1}.
L climbers drank tea in a warm hut high above {town1} on {day1}, for the first time since the old
  one [burned|collapsed].
L four walls, a stove and a view: that is what hikers above {town1} were given on {day1}.
F it stands at {h},000 feet and sleeps {b}.
F ${c} million was needed, half of it from donations.
F solar panels and melted snow supply it.
D a helicopter made hundreds of flights, always before the clouds came.
D purists complain that hot showers do not belong on a peak.
D rock under the foundations must be cooled, since frost no longer holds it.
Q you earn your soup up here with three hours of sweat
Q the carpenters slept in tents and never once grumbled aloud
Q please carry your rubbish down, it did not walk up by itself
Q I met my husband in the old hut, he snored
R the hut warden; the architect; president of the alpine club; a climber and {job}
X beds can be booked until {month}.
X the old path will be marked anew by {day}.
X in winter, a small room stays unlocked.
S a mountain hut opened above {town1}.
S it stands at {h},000 feet and sleeps {b}.
S it cost ${c} million.
"""
