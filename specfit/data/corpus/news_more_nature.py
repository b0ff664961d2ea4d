"""More train events: nature, farming, sea and mountains (form: see event_type.py)."""

from __future__ import annotations

NATURE = """
@ beached_whales
# n=4..90 s=2..40 h=5..40
L a pod of whales swam ashore on a beach near {town1} on {day1}, and {people} hurried to keep them
  wet.
L buckets, bed sheets and bare hands were used on {day1} to help whales stranded near {town1}.
L when the tide went out at {town1} on {day1}, it left behind a row of gasping whales.
F {n} animals lay on the sand for {h} hours.
F {s} volunteers in wetsuits held their heads above the waves.
F most of them swam off with the evening tide.
D a sick leader may have drawn the others into the shallow bay.
D the animals called to each other, a sound that helpers said they would not forget.
D roads to the beach were closed because so many wanted to watch.
Q you look into that eye and you know somebody is at home
Q we sang to one of them, silly as it sounds
Q pulling by the tail does more harm than good
Q noise from ships could be to blame, but proof is hard to get
R a marine biologist; the head lifeguard; a {job} who helped; a vet
X boats will patrol the bay until {day} in case they come back.
X samples from the dead animals will be studied in {month}.
X a course for whale helpers is to be offered in {month}.
S whales were stranded near {town1}.
S {n} animals lay ashore for {h} hours.
S {s} volunteers helped.
@ bee_decline
# p=14..62 k=40..900..10 h=2..40
L beekeepers in {county1} opened their hives on {day1} and found many of them silent.
L a hard winter and a tiny mite have emptied hives around {town1} in {county1}, keepers reported
  on {day1}.
L honey may become scarce in {county1}, where beekeepers on {day1} counted their losses.
F {p} percent of colonies did not survive.
F {k} keepers took part in the count, which covered {h},000 hives.
F orchards will have to rent bees from elsewhere.
D the old keepers blame bare fields where clover used to grow.
D one keeper found his bees dead on full combs of honey.
D a school has planted a strip of wild flowers along its fence.
Q I lifted the lid and there was no hum
Q without bees, no cherries, it is that plain
Q we treat the mite in autumn, but many start too late
Q a tidy lawn is a desert with good manners
R chair of the beekeepers' society; an orchard owner; an insect researcher; a {job} with two hives
X free seed will be handed out on {day}.
X a ban on one spray will be discussed in {month}.
X a new count is planned for {month}.
S many bees in {county1} have died.
S {p} percent of colonies were lost.
S the count covered {h},000 hives.
@ avalanche
# l=200..3000..100 w=2..30 v=15..300
L an avalanche thundered down on the road above {town1} on {day1}, burying [two empty cars|a snow
  plow|a bus shelter].
L villagers above {town1} were cut off on {day1} after masses of snow slid into the valley.
L dogs searched the snow near {town1} on {day1}, but nobody had been caught in the slide.
F the slide was {l} feet wide and up to {w} feet deep.
F {v} guests and villagers cannot leave until the road is cleared.
F bread and milk are being flown in.
D a weak layer of old snow had given way under the weight of the new.
D wooden barriers from another century held back the worst.
D hotel guests passed the time with cards, and with what remained in the cellar.
Q first came the wind, then the roar, then nothing at all
Q the mountain does not read our brochures
Q we blast the slopes at dawn so that they come down when we want
Q the cows are fed, and that is what matters
R head of the avalanche service; a hotel owner; a stranded guest; a snow plow driver
X the road should reopen by {day}.
X further slides are possible as long as the wind blows from the west.
X a stronger barrier is planned for {month}.
S an avalanche cut off villagers above {town1}.
S the slide was {l} feet wide.
S {v} people cannot leave.
@ earthquake
# m=3..5 d=2..19 c=12..400 r=20..90
L the ground shook beneath {town1} on {day1}, [cracking chimneys|ringing church bells|emptying
  shelves].
L an earthquake sent {people} in {town1} out into the street in their pajamas on {day1}.
L cups danced and dogs howled in {town1} on {day1} as a moderate earthquake passed.
F it measured {m}.2 and its source lay {d} miles down.
F it damaged {c} buildings, none of them beyond repair.
F the shaking went on for {r} seconds.
D a teacher led her class under the desks before the second jolt.
D the last tremor of that size was noted by a monk with a quill.
D lifts stopped between floors, and a {job} spent two hours in one.
Q I grabbed the baby and the goldfish
Q such quakes cannot be foretold, whatever your neighbor claims
Q old brick houses suffer most, they cannot bend
Q the floor felt like a boat
R a seismologist; the fire chief; a {job} living on the sixth floor; a building inspector
X smaller tremors may follow until {day}.
X inspectors will check every school before {month}.
X a fund for damaged homes is under discussion.
S an earthquake shook {town1}.
S it measured {m}.2 and lasted {r} seconds.
S {c} buildings were damaged.
@ volcano_ash
# h=2..9 e=200..6000..100 f=12..200
L a volcano near {town1} woke from a long sleep on {day1}, throwing grey ash over roofs and
  gardens.
L a column of ash darkened the midday sky over {town1} on {day1}.
L after weeks of rumbling, the mountain behind {town1} erupted on {day1}.
F the cloud rose {h} miles, and pilots were told to stay away.
F {e} villagers were taken to sports halls.
F {f} flights were canceled.
D roofs had to be swept because wet ash is as heavy as cement.
D one old farmer refused to leave without his mule, and got his way.
D sulfur in the air stung the eyes and turned silver spoons black.
Q she grumbled all spring, and now she has spoken
Q lava is slow, people are slower still when they pack
Q in ten years this ash will grow the best tomatoes in the land
Q I left the key in the door for the firemen
R a volcano researcher; a village mayor; a {job} staying in a sports hall; an airport manager
X a ring of five miles will stay closed until {day}.
X scientists fly over the crater again on {day}.
X schools reopen once the air is clean.
S a volcano erupted near {town1}.
S {e} villagers were moved.
S {f} flights were canceled.
@ drought_reservoir
# p=9..38 l=60..180..5 y=20..90
L the lake that feeds the taps of {town1} has shrunk so far that an old church tower came to light
  on {day1}.
L watering lawns is forbidden in {town1} from {day1}, since the reservoir is nearly dry.
L boats lie on cracked mud at the reservoir of {town1}, whose level hit a new low on {day1}.
F the lake holds {p} percent of what it should, the lowest in {y} years.
F households may use no more than {l} gallons a day.
F fountains have been turned off and car washes shut.
D fish were caught in nets and carried to deeper water.
D a golf club caused anger by running its sprinklers after dark.
D treasure hunters walk where one used to sail, finding anchors and false teeth.
Q I was christened in that church before they drowned it
Q we share one bath, the smallest child goes first
Q leaking pipes lose more than all the gardens together
Q three weeks of gentle rain would save us, a cloudburst would not
R manager of the waterworks; a {job} and gardener; a fishery warden; a climate researcher
X tankers will bring water from {town} starting on {day}.
X if nothing falls by {month}, factories must cut back too.
X the council will vote on new pipes in {month}.
S the reservoir of {town1} is nearly dry.
S it holds {p} percent of normal.
S each household may use {l} gallons a day.
@ beaver_dam
# n=2..12 a=2..40 d=12..90
L beavers have built a dam so large that a road outside {town1} had to be closed on {day1}.
L a family of beavers won the first round against the road office of {town1} on {day1}.
L water stood knee-deep in a maize field near {town1} on {day1}, and the culprits had flat tails.
F the dam is {d} feet long, and {n} beavers are thought to live there.
F it has flooded {a} acres.
F the law protects them, so that workers may not touch it.
D each time a gap was dug, it was closed by the next morning.
D kingfishers and dragonflies have come back to the new pond.
D a neighbor sells postcards of the dam from a table by the road.
Q they work nights, need no permit and never go over budget
Q I grow maize, not rice
Q this pond stores water that we will miss in August
Q a pipe through the dam would calm everyone down
R a wildlife officer; the owner of the field; a road engineer; a biology teacher
X a pipe to lower the water will be fitted in {month}.
X compensation for the farmer is being worked out.
X the two sides meet again on {day}.
S beavers flooded land near {town1}.
S their dam is {d} feet long.
S {a} acres are under water.
@ rare_bird
# y=20..140 w=40..900..10 m=2..9
L a bird not seen in {county1} for generations landed on a pond near {town1} on {day1}.
L hundreds of long lenses pointed at one reed bed near {town1} on {day1}, where a lost
  [pelican|crane|owl|ibis] was resting.
L blown off course, a rare visitor caused a stir at a sewage pond near {town1} on {day1}.
F it was last seen here {y} years ago.
F {w} birdwatchers came on the first day alone.
F the species normally lives {m},000 miles to the south.
D a father and son drove all night, only to arrive when it was asleep.
D the pond's owner charged nothing, but his wife sold tea.
D it shows no fear and eats frogs with obvious pleasure.
Q I dropped my sandwich and did not pick it up
Q please keep your distance, it is tired and far from home
Q to some it is a bird, to us it is the bird
Q storms bring such guests, warmer winters may make them stay
R a bird expert; a visitor and {job}; the owner of the pond; a ranger
X it will probably fly on by {day}.
X a hide for visitors is to be put up.
X the record must be confirmed by a committee in {month}.
S a rare bird appeared near {town1}.
S it was last seen {y} years ago.
S {w} birdwatchers came on the first day.
@ escaped_animals
# n=2..30 h=3..50 m=2..20
L [llamas|emus|goats|ponies] broke out of a circus in {town1} on {day1} and strolled along the
  main street.
L drivers in {town1} rubbed their eyes on {day1} as a herd of runaway animals passed them at a red
  light.
L somebody had left a gate open in {town1} on {day1}, and before long the phones at the police
  station rang.
F {n} animals were loose for {h} hours.
F they were found {m} miles away in a field of clover.
F a bag of apples was enough to lead them home.
D one of them visited a hair salon and studied itself in the mirror.
D a bed of tulips in front of the {place} did not survive.
D police had no rope, so they used scarves and a hose.
Q I reported it twice, because the first officer laughed
Q they only wanted to see the town
Q nobody should chase them, running is what they do best
Q the smallest one now answers to the name of Sergeant
R the owner; a police sergeant; a hairdresser; a {job} who saw it all
X the owner must pay for the flowers.
X a double lock was fitted the same evening.
X whether there will be a fine is to be decided by {day}.
S animals escaped in {town1}.
S {n} of them were loose for {h} hours.
S they were caught {m} miles away.
@ toad_tunnel
# n=2..60 l=20..90 c=30..400..10
L volunteers carried toads across a busy road near {town1} in buckets on {day1} for what may be
  the last time.
L a tunnel just for toads and newts was handed over near {town1} on {day1}.
L spring has arrived in {town1}, and with it, on {day1}, came a new passage for creatures with
  short legs.
F it is {l} feet long and cost ${c},000.
F up to {n},000 animals cross there each spring.
F low fences guide them to the entrance.
D some taxpayers mocked the project as a subway for slime.
D children painted a sign showing a toad with a ticket.
D warm rain after sunset is the signal that sets them moving.
Q every one of them eats more slugs than I can count
Q my knees are glad, after so many nights with a bucket
Q it costs less than a traffic light and offends nobody
Q they walk to the pond where they were born, and no road will change their mind
R a volunteer and {job}; a road planner; a member of the nature club; a councilor who voted
  against it
X a camera will count users until {month}.
X three more roads are to get passages if it works.
X the buckets will be kept, just in case.
S a tunnel for toads opened near {town1}.
S it is {l} feet long and cost ${c},000.
S up to {n},000 animals cross each spring.
"""
