"""Train events: sport, culture, science, daily life (form: see event_type.py)."""

from __future__ import annotations

LIFE = """
@ sports_final
# a=2..6 b=0..1 s=8..70
L the [Rovers|Eagles|Bears|United|Comets] of {town1} [beat|defeated|stunned] {town2} in the final
  on {day1} [to win the cup|and lifted the trophy].
L {town1} [celebrated|danced] on {day1} after its team [won|took] the final against {town2}.
F the game ended {a}-{b}[ after extra time|, a {adj} score|].
F {first1} {surname1} scored the [decisive|first|last] goal before {s},000 fans.
D a [red card|missed penalty|injury] [changed|turned] the game, for {reason}.
D fans [sang|stood] in {weather} near the {place} until late.
Q I closed my eyes and kicked
Q the better team lost today, but that is sport
R coach of {town1}; captain of {town2}; a fan and {job}
X a parade is planned for {day}.
X the season starts again in {month}.
S {town1} beats {town2} {a}-{b} in the final.
S {first1} {surname1} scored a goal.
S {s},000 fans watched.
@ museum_exhibit
# n=30..480 y=3..40 c=4..28
L a museum in {town1} [opened|opens] an exhibition of [masks|maps|glass|early photographs|ship
  models|royal dresses] on {day1}.
L visitors [queued|waited] outside the {town1} museum on {day1} to see a {adj} new show.
F it shows {n} objects[, some never seen in public|, many on loan from {town2}].
F curators [collected|searched] for {y} years; entry costs ${c}.
D one piece was [found|forgotten] in a cellar, although {reason}.
D [critics|students] {adv} {did} the {adj} lighting.
Q each object has a voice if you are patient
Q my daughter did not want to go home
R the curator; a visiting {job}; the museum's director
X the show runs until {month}.
X it then moves to {town}.
S an exhibition opens in {town1}.
S it shows {n} objects.
S entry costs ${c}.
@ science_study
# n=200..9800..100 p=6..48 y=2..25
L [sleep|walking|reading|singing|gardening|coffee] may [protect the heart|improve memory|lower
  stress|slow aging], a study from {town1} [found|suggests].
L researchers in {town1} on {day1} published {adj} results about a daily habit.
F they followed {n} people for {y} years.
F those with the habit [fell ill|forgot words|saw a doctor] {p} percent less often.
D other scientists were {feel}: {reason}, they noted.
D the team is funded by {firm}[, which had no say in it|].
Q it is a link, not a proof
Q I would not change my life for it, but it is a {adj} hint
R lead author of the study; a doctor who was not involved; a statistician
X a larger trial begins in {month}.
X the data will be open to all by {month}.
S a study in {town1} followed {n} people.
S it lasted {y} years.
S the effect was {p} percent.
@ space_launch
# d=3..300 k=120..4800..20 m=12..900
L a rocket [carrying|with] [a weather satellite|a telescope|a lunar probe|supplies for a space
  station] [lifted off|took off] near {town1} on {day1}.
L [a bright trail|thunder] over {town1} on {day1} marked the start of a {adj} space mission.
F the [spacecraft|craft] weighs {k} pounds and will travel for {d} days.
F the mission of {firm1} cost ${m} million.
D two earlier attempts were stopped because of {weather}.
D {people} watched from the {place} and {adv} {did} the countdown.
Q I held my breath until the second stage lit
Q we now wait for a whisper from very far away
R the flight director; an engineer at {firm1}; a {job} who watched the launch
X the first pictures are expected in {month}.
X the next launch is set for {month}.
S a rocket was launched near {town1}.
S the mission costs ${m} million.
S the craft travels for {d} days.
@ transport_delay
# h=2..14 t=6..90 n=2..60
L trains [to|from] {town1} were [late|canceled] on {day1} after [a signal failed|a cow blocked the
  track|cables were stolen|a tree fell].
L {people} [were stranded|lost hours] on {day1} when the line between {town1} and {town2} was
  closed.
F {t} trains were canceled and {n},000 passengers [affected|had to wait].
F the line reopened {h} hours later.
D staff handed out [water|taxi vouchers|apples] at the {place}.
D the operator, {firm}, [blamed|pointed to] age and {weather}.
Q I missed my own wedding rehearsal
Q our crews did in hours what takes days
R a stranded {job}; a spokesman for the railway; a station manager
X delays may go on until {day}.
X refunds can be claimed until {month}.
S {t} trains canceled near {town1}.
S {n},000 passengers had to wait.
S the line reopened after {h} hours.
@ zoo_birth
# w=2..180 n=2..30 v=2..40
L a [panda|rhino|giraffe|tiger|red wolf|penguin] was born at {town1} zoo, keepers [revealed|said]
  on {day1}.
L {town1} zoo [celebrated|announced] a {adj} birth on {day1}.
F the baby weighs {w} pounds and is the first [born there|there] in {n} years.
F {v},000 people sent in names.
D the mother [hid|guarded] it behind straw, since {reason}.
D keepers watched by camera {time}.
Q it stood up, fell, and stood up again
Q every birth counts for a species with so few left
R head keeper; the zoo's vet; a visiting {job}
X the public may see it from {month}.
X a name will be chosen on {day}.
S an animal was born at {town1} zoo.
S it weighs {w} pounds.
S {v},000 people sent names.
@ festival
# n=3..95 b=12..180 d=2..9
L the [jazz|film|lantern|food|book|folk] festival of {town1} [began|opened] on {day1} [in
  {weather}|with drums and lights].
L {town1} [filled|came alive] on {day1} with music and {people} from all over {county1}.
F {b} [artists|bands|guests] appear over {d} days.
F organizers expect {n},000 visitors[, more than ever|].
D hotels [are full|doubled prices], and {reason}.
D a stage near the {place} [collapsed in rehearsal|was built {time}].
Q for one week this sleepy town is the center of the world
Q the drums do not stop, and I open at six
R festival director; a musician from {town}; a {job} who lives next to the stage
X it ends with fireworks on {day}.
X tickets are sold until {day}.
S the festival of {town1} has begun.
S {n},000 visitors are expected.
S {b} guests appear over {d} days.
@ hospital_new
# b=60..780..10 m=14..460 s=80..990..10
L {town1} [opened|got] a new [hospital|children's clinic|heart center] on {day1}[, years later
  than planned|].
L patients [moved|were carried] into the new clinic of {town1} on {day1}.
F it has {b} beds and cost ${m} million.
F {s} people [will work there|are employed].
D the old building, near the {place}, [will be torn down|becomes flats].
D [nurses|doctors] {adv} {did} the plans, as {reason}.
Q windows that open: you have no idea what that means to the sick
Q a house does not heal anyone if staff are missing
R chief doctor; a nurse at the clinic; the health minister
X surgery begins in {month}.
X an open day is planned for {day}.
S a clinic opened in {town1}.
S it has {b} beds.
S it cost ${m} million.
@ ancient_find
# y=4..40 n=12..900 d=3..30
L [workers|students|a farmer|a dog walker] near {town1} [discovered|found] [coins|a ship|graves|a
  temple floor|bronze swords], experts [confirmed|said] on {day1}.
L an old field near {town1} [gave up|revealed] a {adj} secret, researchers said on {day1}.
F the [find|site] is {y}00 years old and lay {d} feet under the ground.
F {n} objects have been [cleaned|counted] so far.
D [rain|a digger] nearly destroyed it, and {reason}.
D guards now [watch|patrol] the field {time}.
Q it was like shaking hands with the dead
Q I thought it was an old pipe
R an archaeologist from {town}; the finder, a {job}; head of the heritage office
X digging continues until {month}.
X the best pieces will be shown in {month}.
S an old site was found near {town1}.
S it is {y}00 years old.
S {n} objects were recovered.
@ marathon
# n=2..48 h=2..3 m=10..58 y=18..44
L {first1} {surname1} won the {town1} marathon on {day1}[, despite {weather}|, running alone for
  the last miles].
L the {town1} marathon on {day1} [ended|finished] with a {adj} victory for {first1} {surname1}.
F the {y}-year-old [needed|finished in] {h} hours and {m} minutes.
F {n},000 runners [started|took part].
D a bend near the {place} [was icy|caused falls], and {reason}.
D the favorite, from {town}, [gave up|stopped] with cramps.
Q at the last bridge my legs said no and my head said yes
Q for a {job} who trains at night, this is a miracle
R the winner; the race director; the runner-up
X the next race is in {month}.
X results become official on {day}.
S {first1} {surname1} won the {town1} marathon.
S the time was {h} hours and {m} minutes.
S {n},000 runners took part.
"""
