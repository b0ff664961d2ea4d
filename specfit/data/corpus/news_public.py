"""Train events: public life (form: see event_type.py)."""

from __future__ import annotations

PUBLIC = """
@ council_vote
# a=5..19 b=2..9 m=2..90
L the council of {town1} [voted|decided] on {day1} to [close|rebuild|sell|enlarge|renovate] the
  {place1}[, ending a {adj} debate| after months of {adj} talks|].
L after a {adj} debate, the {town1} council on {day1} [settled|decided] the future of the
  {place1}.
F the [motion|proposal] passed by {a} votes to {b}[, with several members absent|, a {adj}
  result].
F the work [will|is expected to] cost ${m} million[, most of it from {county1} funds|, paid over
  several years].
D [opponents|critics] [held signs|shouted|sat in silence] during the vote, [because|as] {reason}.
D the plan was first [drawn up|presented] in {month}, when {people} {adv} {did} it.
Q the {place1} belongs to everyone, and this vote [proves|shows] it
Q ${m} million is a lot of money for a town of our size
R the mayor of {town1}; a member of the opposition; chair of the finance committee
X construction [could|should] begin in {month}, [if no court objects|once permits are granted].
X a second reading is planned for {day}.
S {town1} council votes {a} to {b} on the {place1}.
S the plan costs ${m} million.
S the decision was made on {day1}.
@ storm
# w=60..140..5 h=2..90 k=3..80
L a [powerful|violent|fierce|slow] storm [swept|tore|moved] through {town1} on {day1}, [ripping
  off roofs|flooding cellars|blocking roads] and [cutting power|felling trees].
L {people} in {town1} [were cleaning up|counted the damage] after [a violent|a sudden] storm
  [struck|hit] {county1} on {day1}.
F winds reached {w} miles per hour[, the weather service said|, more than forecast].
F about {h},000 homes [lost electricity|were without power|stayed dark] [overnight|for hours].
F {k} people were [treated for injuries|brought to shelters], [none of them in danger|most of them
  {people}].
D [trains stood still|schools stayed shut|the {place} served as a shelter] until {day}.
D trees [lay across|blocked] the road to {town}, and crews worked [through the night|{time}].
Q the noise was like a train coming through the wall
Q we lost the roof, but nobody in the house was hurt
R head of the emergency service; a {job} whose house was damaged; a forecaster at the weather
  office
X forecasters expect {weather} [by|from] {day}[, but no new storm|].
X power should be back by {day}, the grid operator promised.
S a storm hit {town1} on {day1}.
S {h},000 homes lost power.
S winds reached {w} miles per hour and {k} people were hurt or moved.
@ flood
# r=3..29 e=200..9000..100 f=2..40
L [rising|muddy] water forced {people} [in|out of] {town1} [to leave their homes|onto rooftops] on
  {day1}, [after days of rain|when a dam gave way].
L the river at {town1} [burst its banks|overflowed] on {day1}, [drowning|covering] fields and
  streets [in brown water|].
F the [water|river] rose {r} feet [above normal|in a single day].
F {e} people [were moved to safety|left their houses|spent the night in gyms and schools].
F [soldiers|volunteers|firefighters] filled {f},000 sandbags.
D [insurers|farmers] fear [heavy losses|a ruined harvest], because {reason}.
D [boats|helicopters|tractors] brought {people} from the {place} to higher ground.
Q the water came so {adv} that we only took the dog
Q every hour without rain is a gift
R the fire chief of {town1}; a {job} who was rescued by boat; an engineer for the river authority
X the water is expected to [fall|drop] by {day}.
X the government will decide on aid in {month}.
S flooding in {town1} drives {e} people from their homes.
S the river rose {r} feet.
S helpers filled {f},000 sandbags.
@ election
# p=41..69 q=51..84 n=3..40
L {first1} {surname1} [won|narrowly won|surprisingly won] the election for
  [mayor|governor|regional president] of {county1} on {day1}[, defeating a long-time rival|].
L voters in {county1} on {day1} [chose|elected] {first1} {surname1}, a former {job1}, as their new
  [leader|governor].
F {surname1} [received|took|won] {p} percent of the vote[, according to final figures|, a {adj}
  margin].
F turnout [was|reached] {q} percent[, the highest in decades|, lower than expected|].
D the campaign was [{adj} and {adj}|shaped by {want}|dominated by taxes and housing].
D [queues formed|ballots ran out|a machine failed] at the {place}, where voting ended {n} minutes
  late.
Q the people of {county1} have asked for {want}
Q we congratulate {surname1}, but we will watch every step
R the losing candidate; head of the election office; a voter and {job}
X {surname1} will take office in {month}.
X a recount [is unlikely|may follow], officials said.
S {first1} {surname1} wins the election in {county1}.
S {surname1} took {p} percent of the vote.
S turnout was {q} percent.
@ court_ruling
# y=2..25 m=2..90 w=11..99
L a [court|judge] in {town1} [ruled|decided] on {day1} that {firm1} must [pay damages|change its
  contracts|clean up a polluted site|recall its managers].
L {firm1} [lost|suffered a defeat in] a {adj} case before the {town1} court on {day1}.
F the company has to pay ${m} million to {w} [former employees|customers|families|small
  suppliers].
F the case [had dragged on|lasted] for {y} years[ and filled whole rooms with paper|].
D lawyers [argued over|spent weeks on] a single {adj} letter, written {time}.
D the judge called the company's conduct "{adj}" and its defense "{adj}".
Q justice came late, but it came
Q our client never intended any harm and will appeal
R a lawyer for the company; a spokesman for the plaintiffs; a law professor from {town}
X an appeal must be filed by {month}.
X shares of the company [fell|were suspended] after the ruling.
S court orders {firm1} to pay ${m} million.
S {w} people benefit from the ruling.
S the case lasted {y} years.
@ rescue
# n=2..14 h=5..60 d=80..900..20
L {n} [hikers|miners|sailors|climbers|schoolchildren] were [rescued|brought to safety] near
  {town1} on {day1}, [cold but unhurt|after a {adj} search].
L rescuers near {town1} on {day1} [reached|saved] {n} people who had been [trapped|missing] since
  the weekend.
F they [had survived|had waited] for {h} hours [on snow and chocolate|in the dark|with little
  water].
F a [team of volunteers|helicopter crew|dog] [found|discovered] them {d} feet [below the
  summit|under ground|from the path].
D [a broken phone|a weak light|shouting in the dark] [led|guided] the searchers, although
  {reason}.
D families [waited|prayed|slept] at the {place}, where {people} brought [soup|blankets].
Q when I saw the lamp, I knew we would live
Q another night out there would have been too much
R leader of the rescue team; one of the survivors; a doctor at the {town1} hospital
X police will [examine|investigate] why the group [set out|ignored a warning].
X all of them should leave hospital by {day}.
S {n} people were rescued near {town1}.
S they had been stuck for {h} hours.
S rescuers found them on {day1}.
@ wildfire
# a=200..9000..100 c=5..70 h=3..60
L a wildfire [raced|burned|spread] across the hills above {town1} on {day1}, [sending smoke over
  the valley|and {people} fled].
L firefighters [fought|struggled] to [stop|contain] a fire near {town1} on {day1} as {weather}
  [made their work harder|did not help].
F the flames have [burned|destroyed] {a} acres of [forest|dry grass|vineyards].
F {h} houses [were lost|burned down], and the fire is {c} percent contained.
D investigators suspect [a cigarette|a power line|a spark from a mower|lightning].
D ash [fell like snow|covered cars] in {town}, miles away.
Q we saw the ridge turn orange and ran
Q my crew has not slept since {day1}
R a fire captain; a {job} who lost a house; a forest ranger in {county1}
X rain is forecast for {day}, but [so is|not without] wind.
X {people} may return once roads are checked.
S a fire near {town1} has burned {a} acres.
S {h} houses were destroyed.
S the fire is {c} percent contained.
@ school_reform
# n=12..90 p=2..19 b=3..48
L schools in {county1} will [start later|teach fewer subjects|hire new staff|ban phones], the
  education office [announced|said] on {day1}.
L the education office of {county1} presented a {adj} reform on {day1} after {people} had called
  for {want}.
F the change [affects|covers] {n} schools and costs ${b} million.
F a trial in {town1} [raised|improved] test scores by {p} percent[, though the sample was small|].
D unions {adv} {did} the {thing}, saying that {reason}.
D [parents|pupils] in {town} [signed a petition|wrote letters] [for|against] the reform.
Q children learn best when they are awake
Q nobody asked the teachers who must do this
R a headteacher in {town1}; the education secretary; president of the teachers' union
X the rules take effect in {month}.
X parliament will review the reform next {month}.
S {n} schools in {county1} face a reform.
S it costs ${b} million.
S a trial raised scores by {p} percent.
@ bridge_closed
# y=30..120 v=3..60 w=4..40
L the [old|steel|main] bridge at {town1} was closed on {day1} after [inspectors|engineers|divers]
  found [cracks|rust|loose bolts].
L engineers shut the bridge between {town1} and {town2} on {day1}, [causing long detours|to the
  anger of {people}].
F the bridge is {y} years old and carries {v},000 vehicles a day.
F repairs [will|could] take {w} weeks[, weather permitting|, the road office said].
D drivers [sat in traffic|turned around|waited] for hours near the {place}.
D shop owners fear [empty streets|lost sales] because {reason}.
Q safety comes first, even when it hurts
Q I now need an hour for a trip of five minutes
R chief engineer of {county1}; a {job} who crosses the bridge daily; a spokeswoman for the road
  office
X a ferry will run from {day}.
X a [final|full] report is due in {month}.
S the bridge at {town1} is closed.
S repairs may take {w} weeks.
S it carries {v},000 vehicles a day.
@ police_theft
# n=2..60 m=3..95 d=2..20
L police in {town1} [arrested|are looking for] [two men|a woman|a group of thieves] on {day1}
  after [paintings|bicycles|jewels|rare books|antique clocks] [vanished|were stolen] from the
  {place1}.
L a theft at the {place1} in {town1} [puzzled|surprised] police on {day1}.
F {n} items worth ${m},000 [disappeared|were taken] {time}.
F detectives [watched|studied] {d} hours of video[ before they saw a clue|].
D the alarm [had been switched off|failed], since {reason}.
D a {job} [noticed|reported] a [grey|white|blue|black] van near the {place}.
Q whoever did this knew the building well
Q we want our things back, no questions asked
R a police inspector; director of the {place1}; a guard
X a reward has been offered for tips.
X the suspects will appear in court on {day}.
S {n} items were stolen in {town1}.
S they are worth ${m},000.
S police studied {d} hours of video.
"""
