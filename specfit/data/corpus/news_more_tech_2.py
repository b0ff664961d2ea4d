"""More train events: technology, science and health (form: see event_type.py)."""

from __future__ import annotations

TECH_2 = """
@ flu_outbreak
# n=40..900..10 b=12..96 s=3..25
L classrooms stayed empty in {town1} on {day1} because of an early and stubborn flu.
L doctors in {town1} asked {people} on {day1} to wear masks as a wave of flu spread.
L coughs drowned out the Sunday sermon, and by {day1} the health office of {town1} spoke of an
  outbreak.
F doctors counted {n} cases in one week, three times as many as usual.
F hospitals kept {b} beds free and postponed minor operations.
F the health office closed {s} schools until further notice.
D pharmacies ran low on throat tablets and thermometers.
D a choir that had met in an unheated hall was hit hardest.
D the mayor gave his speech by video, wrapped in a blanket.
Q half my class is in bed, and the other half wants to be
Q wash your hands, open a window and stay away from your grandmother
Q it is not too late for an injection
Q I have baked for the whole street because my two colleagues are ill
R the district doctor; a headteacher; a pharmacist; a {job} with two sick children
X the wave should reach its peak by {day}.
X additional vaccine will be delivered from {town} within days.
X visitors are barred from care homes for the time being.
S flu has broken out in {town1}.
S {n} cases were counted in one week.
S {s} schools are closed.
@ blood_donors
# u=80..950..10 d=2..9 k=20..75
L hospitals in {county1} are running short of blood, the transfusion service warned on {day1}.
L an appeal for blood brought long lines to a tent in {county1} on {day1}.
L with shelves almost bare, the blood bank of {county1} asked for help on {day1}.
F stocks would last only {d} days, the service said.
F it needs {u} donations each week, but gets far fewer.
F every donor between 18 and {k} is welcome.
D summer holidays and a rule change on travel had thinned the ranks of givers.
D a bakery promised a free pie to each person who rolled up a sleeve.
D rare groups are so scarce that one bag was flown in from {town}.
Q ten minutes on a couch may give someone ten years
Q I am afraid of needles, so I looked at the ceiling
Q blood cannot be made in any factory
Q my son lives because a stranger had a free afternoon
R a doctor at the blood bank; a first-time donor and {job}; a nurse; the mother of a patient
X the tent will stay open until {day}.
X teams will visit workplaces from {month} onward.
X a reminder by text message is being tested.
S blood is running short in {county1}.
S stocks would last {d} days.
S {u} donations are needed a week.
@ hot_spring_heating
# d=2..9 h=2..30 p=11..48
L houses in {town1} are to be warmed by water from deep underground, it was decided on {day1}.
L drillers cheered on {day1} when steam shot out of a well behind the {place1} in {town1}.
L instead of burning gas, {town1} will heat its homes with the warmth of the earth, planners said
  on {day1}.
F the well is {d},000 feet deep and can serve {h},000 homes.
F bills are expected to fall by {p} percent.
F pipes will be laid street by street.
D tiny tremors were felt during drilling, which alarmed owners of older cellars.
D a school is first in line, since its boiler dates from another age.
D greenhouse growers would like to have what heat is left over.
Q we have been sitting on a kettle all this time
Q I want to know who pays if my walls crack
Q no tanker, no pipeline and no dictator can turn this off
Q the smell of eggs is harmless and soon gone
R a geologist; director of the municipal utility; a {job} in the drilling area; an energy adviser
X the first radiators should be warm by {month}.
X instruments will measure every tremor until {month}.
X a vote on a second well is planned.
S {town1} will heat homes with water from underground.
S the well is {d},000 feet deep and serves {h},000 homes.
S bills should drop {p} percent.
@ young_inventor
# a=11..17 c=4..60 n=3..70
L {first1} {surname1}, a schoolchild from {town1}, won an inventors' prize on {day1} for [a cane
  that sees holes|a lamp powered by footsteps|a pillow that stops snoring].
L an idea born at the kitchen table brought {first1} {surname1} of {town1} a national prize on
  {day1}.
L judges at a fair in {town1} needed little time on {day1}: the best invention came from young
  {first1} {surname1}.
F the {a}-year-old built it for ${c} from [scrap|old toys|spare parts].
F {n} other entries were rejected, some by university teams.
F a patent has been applied for.
D the first model caught fire, the second one fell apart, the third one worked.
D an uncle who is a {job} lent the tools and kept silent about the mess.
D two companies have asked to meet, but homework comes first.
Q I got annoyed by something every day and then I fixed it
Q adults told me it was impossible, so I asked them why
Q talent is common, what is rare is somebody who listens
Q we hid the soldering iron, but it was no use
R the inventor's mother; a physics teacher; a member of the jury; a patent lawyer
X a small series may be built in {month}.
X the prize money will go into a better workbench.
X next, the device will be shown in {town}.
S {first1} {surname1} won a prize for an invention.
S the {a}-year-old spent ${c} on it.
S it beat {n} other entries.
@ reading_app
# u=3..90 l=4..60 p=11..52
L an app that reads [letters|menus|street signs] aloud to the blind was released in {town1} on
  {day1}.
L {people} with poor eyesight can let their phones do the looking, developers from {town1} said on
  {day1}.
L a free program written by students in {town1} drew praise on {day1} for helping the blind get
  around.
F it speaks {l} languages and has {u},000 users.
F in a test, errors fell by {p} percent compared with older programs.
F no pictures are stored, its makers promise.
D the voice was lent by a retired radio announcer, who recorded for three weeks.
D handwriting remains difficult, especially that of doctors.
D the students turned down an offer from {firm} to buy the code.
Q for the first time in years I chose my own soup
Q we began by wearing blindfolds for a week
Q it once called my cat a loaf of bread, but it is learning
Q public money should support tools like this, not just admire them
R one of the programmers; a teacher at a school for the blind; a user and {job}; a privacy expert
X a version for glasses is in preparation.
X the next update, due in {month}, will recognize banknotes.
X volunteers who want to lend a voice may apply until {month}.
S an app from {town1} reads to the blind.
S it has {u},000 users and {l} languages.
S it makes {p} percent fewer errors than older programs.
@ data_center
# m=40..900..10 a=10..90 j=20..95
L {firm1} wants to build a vast hall of computers on fields outside {town1}, according to papers
  released on {day1}.
L a plan for a data center divided {town1} on {day1}.
L rows of humming servers could soon replace cabbages near {town1}, where {firm1} outlined a
  project on {day1}.
F the site would cover {a} acres and cost ${m} million.
F only {j} permanent jobs are promised.
F waste heat is to warm a public swimming pool.
D farmers object that good soil, once sealed, is lost for generations.
D the power lines would have to be doubled, at whose expense nobody would say.
D supporters point to tax income that could mend the school roof.
Q the cloud turns out to be a very large shed
Q we were promised the future and shown a fence
Q every photograph you keep has to live somewhere
Q my grandfather drained that meadow with a spade
R a planner for the county; a cabbage grower; a spokeswoman for the developer; a {job} living next
  to the site
X objections are being collected until {day}.
X digging cannot start before {month}.
X an expert on noise will measure the hum of a similar hall.
S a data center is planned near {town1}.
S it would cost ${m} million and cover {a} acres.
S it would bring {j} permanent jobs.
@ fog_airport
# f=20..200 p=2..30 y=20..200..10
L fog as thick as soup closed the airport of {town1} on {day1}, and travelers slept on camp beds.
L pilots could not see the end of the runway in {town1} on {day1}, so nothing moved.
L with visibility close to zero, the airport of {town1} came to a standstill on {day1}.
F {f} flights were scrapped, leaving {p},000 travelers behind.
F pilots could see no farther than {y} yards.
F trains and buses were packed by noon.
D an orchestra stuck in the departure hall unpacked its violins.
D the landing aid, which would have helped, was being repaired because {reason}.
D hotels nearby doubled their rates, and some were reported for it.
Q I can hear the plane, I just cannot find it
Q better a night on the floor than a minute in the wrong field
Q my suitcase has flown, only I have not
Q cold air lies in the valley like milk in a bowl
R a weather expert; a stranded {job}; manager of the airport; a pilot
X the sun should break through by {day}.
X extra flights are planned for {day}.
X the landing aid is to be back in service by {month}.
S fog closed the airport of {town1}.
S {f} flights were scrapped.
S {p},000 travelers were left behind.
@ dark_sky_park
# l=40..900..10 p=20..75 s=2..9
L street lamps in {town1} were dimmed on {day1} so that {people} could see the stars again.
L the night is coming back to {town1}, where a switch was turned on {day1}.
L children in {town1} saw the Milky Way for the first time on {day1}, after the council had turned
  down the lights.
F {l} lamps were replaced or shielded, which saves {p} percent of the power.
F astronomers counted {s},000 stars instead of a few dozen.
F churches and billboards go dark at eleven.
D moths, which used to circle the lamps until they dropped, are back on the hedges.
D a burglar was caught all the same, thanks to creaking stairs.
D the owner of a bar sued for his pink sign and lost.
Q I had forgotten that there was something up there
Q darkness is not dangerous, holes in the pavement are
Q owls hunt again behind my shed
Q the savings paid for the lamps within two winters
R an astronomer; the town electrician; a {job} who walks home late; a biologist
X walks with a telescope are offered every {day}.
X a label for dark towns will be awarded in {month}.
X accidents will be counted until {month}.
S {town1} dims its lamps to show the stars.
S {l} lamps were changed.
S it saves {p} percent of the power.
"""
