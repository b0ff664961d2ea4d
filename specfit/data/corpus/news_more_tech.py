"""More train events: technology, science and health (form: see event_type.py)."""

from __future__ import annotations

TECH = """
@ delivery_robots
# n=12..90 s=3..9 k=2..60
L six-wheeled robots began carrying [groceries|parcels|warm meals] through {town1} on {day1},
  [watched by curious dogs|to the delight of children].
L anyone who orders [bread|medicine|soup] in {town1} may now be served by a machine, after {firm1}
  started a trial on {day1}.
L {firm1} on {day1} let its first delivery robots loose on the pavements of {town1}, although
  {reason}.
F they move at {s} miles an hour, and {n} of them are in use.
F in tests, {k},000 deliveries were completed without [an injury|a serious accident].
F customers open the lid with a code sent to their phones.
D one robot got stuck in a hedge near the {place} and had to be lifted out by a {job}.
D couriers, who are paid per trip, fear that the machines will take their place.
D because kerbs are high in the old quarter, some streets remain off limits.
Q my parcel said good morning to me, which the postman never did
Q a robot does not call in sick, but it cannot ring a doorbell either
Q pavements were built for people, and pushing a pram is hard enough already
Q each machine learns the holes in the road by heart
R project manager at the robot maker; a courier; a wheelchair user from {town}; a {job} who
  ordered lunch
X the trial runs until {month}, when the council will decide whether to extend it.
X should complaints pile up, the robots will be limited to {day} and weekends.
X a larger model with heated boxes is being tested in {town}.
S delivery robots have started work in {town1}.
S {n} machines travel at {s} miles an hour.
S {k},000 test deliveries were made without [an injury|serious trouble].
@ internet_outage
# h=4..40 n=3..95 c=2..30
L phones and computers in {town1} fell silent on {day1} when a [digger|ship's anchor|burst pipe]
  cut a data cable.
L shops took only cash and offices sent staff home as {town1} spent {day1} without the internet.
L a single damaged cable left {people} in {town1} offline on {day1}.
F service was gone for {h} hours, and {n},000 connections were affected.
F engineers had to join {c} hundred hair-thin glass fibers by hand.
F emergency calls were rerouted through a mast on a nearby hill.
D pharmacists wrote prescriptions on paper, which some patients had never seen before.
D the backup line, installed years ago, turned out to share the same trench.
D cafes reported that guests were talking to each other more than usual.
Q we noticed how much hangs by a thread thinner than a hair
Q my till would not open, so I sold bread on trust
Q the map showed no cable where our man was digging
Q for one afternoon my children asked me for a board game
R a technician; head of the network operator; a {job} with an online shop; owner of a corner store
X a second route is to be laid by {month}.
X customers can claim a small refund from {day}.
X who pays for the damage will be settled by the insurers.
S a cut cable left {town1} offline.
S {n},000 connections were down for {h} hours.
S {c} hundred glass fibers were joined by hand.
@ driverless_bus
# p=6..20 m=2..14 t=3..80
L a bus without a driver carried its first passengers through {town1} on {day1}.
L nobody sat at the wheel when the newest bus left the depot in {town1} on {day1}.
L passengers [applauded|held on tight] on {day1} as a self-driving bus pulled out into the traffic
  of {town1}.
F the vehicle seats {p} and follows a route of {m} miles.
F during {t} thousand miles of testing, a human had to step in only twice.
F rides are free of charge for the first months.
D a cyclist who cut in front made the bus brake so sharply that bags slid to the floor.
D sensors on the roof can tell a child from a postbox, the builders claim.
D snow, which covers the lane markings, is still a problem for the cameras.
Q my hand kept looking for the bell, and then for the driver
Q it drives like my grandmother, and I mean that kindly
Q we do not want to replace drivers, we cannot find enough of them
Q who says good night to the last passenger now
R a transport planner; a retired bus driver; the engineer in charge; a passenger and {job}
X if all goes well, three more buses will arrive in {month}.
X safety inspectors will publish their findings in {month}.
X night service is to be added once the software has been updated.
S a driverless bus is running in {town1}.
S it has {p} seats and a route of {m} miles.
S it was tested over {t} thousand miles.
@ bionic_hand
# a=19..71 s=8..30 w=9..19
L {first1} {surname1}, who lost a hand in an accident, [tied a shoe|peeled an egg|played the
  piano] on {day1} thanks to an electric one.
L surgeons in {town1} have fitted a thinking hand to {first1} {surname1}, a {job1}, the clinic
  said on {day1}.
L a hand that can feel was shown to reporters on {day1}, and {first1} {surname1} was its proud
  owner.
F {surname1} is {a} years old and trained for {w} weeks before the operation.
F the device weighs {s} ounces and reads signals from the muscles of the arm.
F it warns its wearer when an object is hot.
D the fingertips were printed from a soft material normally used in shoe soles.
D insurers have so far refused to pay, arguing that simpler hooks do the job.
D its battery, no bigger than a biscuit, lasts a full day.
Q the first thing I held was my daughter's hand
Q it took a year of failures before one finger moved
Q what looks like magic is mostly patient counting of tiny currents
Q the price must fall before this can help more than a lucky few
R the surgeon; a biomedical engineer; a physiotherapist; the patient's brother
X eleven more patients are on the waiting list for {month}.
X the team hopes to add a sense of touch to the thumb next.
X a cheaper version may be ready by {month}, if money is found.
S {first1} {surname1} received an electric hand.
S the {a}-year-old trained for {w} weeks.
S it weighs {s} ounces.
@ robot_surgery
# n=20..400..10 h=2..9 p=10..45
L a robot guided by a doctor in another city removed a tumor in {town1} on {day1}.
L for the first time, surgeons at {town1} hospital operated by remote control on {day1}.
L while the surgeon sat in {town2}, the patient lay in {town1}: an unusual operation succeeded on
  {day1}.
F the operation lasted {h} hours and was followed by {n} students on screens.
F patients recover {p} percent faster after such treatment, according to the hospital.
F a second team stood ready in case the line broke down.
D the arms of the machine are steadier than any human wrist.
D critics point out that nurses were not asked before the device was bought.
D the patient, who wishes to remain unnamed, ate a bowl of porridge the next day.
Q I was far away, yet I have never looked so closely
Q the machine does nothing by itself, it is a very fine glove
Q a rural clinic can now borrow the best hands in the country
Q please do not forget that someone must still hold the patient's hand
R the chief surgeon; a nurse in the operating room; a health economist; a medical student
X two further operations are scheduled for {month}.
X the hospital will rent the robot out to smaller clinics from {month}.
X a report on costs has been promised for {day}.
S doctors operated in {town1} by remote control.
S the operation took {h} hours.
S recovery is {p} percent faster, the hospital says.
@ meteorite_fall
# w=2..60 d=2..19 y=2..5
L a stone from space crashed [through the roof of a barn|into a tennis court|beside a henhouse]
  near {town1} on {day1}.
L the owner of a small farm outside {town1} found a smoking hole and a black rock on {day1}.
L what woke half of {town1} on {day1} was neither thunder nor an explosion but a meteorite.
F it weighs {w} pounds and left a hole {d} feet deep.
F the rock is thought to be more than {y} billion years old.
F nobody was hurt, though a goat refused to leave its stall.
D a collector offered a large sum over the phone before the police had even arrived.
D cameras on doorbells recorded a green flash that lasted two seconds.
D scientists collected fragments with magnets and tea strainers.
Q I thought the boiler had blown up
Q this lump is older than every mountain on the planet
Q finders may keep it, but we would love to cut off a slice
Q the hens stopped laying, and I blame the heavens
R an astronomer; the owner of the land; a police officer; a geologist from {town}
X the stone will go on display in {month}.
X laboratory tests should be finished by {day}.
X searchers will comb the fields for more pieces after the harvest.
S a meteorite fell near {town1}.
S it weighs {w} pounds and dug a hole {d} feet deep.
S it is over {y} billion years old.
@ new_planet
# l=9..900 o=2..90 n=3..30
L astronomers at the observatory above {town1} have spotted a planet that might hold water, they
  announced on {day1}.
L far beyond our sun, a world of oceans may be waiting, according to findings released in {town1}
  on {day1}.
L patience paid off in {town1}: after years of watching one dim star, a team reported a new planet
  on {day1}.
F the planet is {l} light years away and circles its star in {o} days.
F a group of {n} researchers shared the work.
F its mass is about twice that of the Earth.
D the first hint came from a student who refused to delete a strange dip in the data.
D clouds over the mountain ruined more than half of the nights.
D other teams urge caution, since dust on a lens can fool even the best.
Q we saw a shadow the size of a flea in front of a lamp
Q nobody will travel there, but everybody will dream of it
Q I was making coffee when the curve appeared
Q before we speak of life, let us first measure the air
R head of the observatory; a doctoral student; a physicist who took no part in the work; a {job}
  and amateur stargazer
X a larger telescope will examine its atmosphere in {month}.
X the public may suggest a name until {month}.
X the full data will be published by {day}.
S a planet that might hold water was found from {town1}.
S it is {l} light years away.
S it orbits its star in {o} days.
@ lost_satellite
# w=300..900..20 y=4..19 o=200..700..10
L engineers in {town1} lost contact with a satellite on {day1}, leaving [ships without
  forecasts|farmers without crop maps].
L a satellite run from {town1} has stopped answering, its operator conceded on {day1}.
L silence filled the control room in {town1} on {day1} after a spacecraft began to tumble.
F it weighs {w} pounds and had been in orbit for {y} years.
F the craft circles {o} miles above the ground.
F a faulty wheel that keeps it steady is thought to be the cause.
D controllers sent the same command over and over through the night.
D spare parts are useless at that height, as one of them drily remarked.
D older satellites nearby will take over some of its duties.
Q it is like calling a friend who has left the phone in a drawer
Q she worked twice as long as we had any right to ask
Q there is too much junk up there, and now there is a little more
Q we shall keep listening, because batteries sometimes wake up in sunlight
R the flight director; a space lawyer; an engineer who built the craft; a {job} relying on its
  pictures
X a final attempt to restart it is planned for {day}.
X its replacement cannot be launched before {month}.
X if nothing helps, it will burn up harmlessly within decades.
S contact with a satellite run from {town1} was lost.
S the craft had worked for {y} years.
S it orbits at {o} miles.
@ vaccine_trial
# n=200..9000..100 p=61..96 y=3..14
L a vaccine against [malaria|hay fever|tick fever|shingles] has passed an important test, doctors
  in {town1} said on {day1}.
L volunteers who rolled up their sleeves in {town1} were told on {day1} that a new vaccine works.
L after a long search, a laboratory in {town1} reported on {day1} that its vaccine had protected
  most of those who took it.
F it prevented illness in {p} percent of cases among {n} people.
F development has taken {y} years so far.
F side effects were limited to sore arms and a day of tiredness.
D half of the volunteers received salt water without knowing it.
D the doses must be kept colder than an ordinary freezer allows.
D a charity paid for the trial after two drug makers had turned it down.
Q we opened the envelope with shaking fingers
Q these figures are strong, yet children have not been studied
Q my arm hurt for an evening, and I would do it again
Q poor regions must not stand at the back of the line
R the leading researcher; a volunteer and {job}; an official of the drug agency; a village doctor
X approval is expected in {month} at the earliest.
X a larger trial with older patients begins in {month}.
X the laboratory is looking for a partner to fill the bottles.
S a new vaccine passed a test in {town1}.
S it prevented illness in {p} percent of cases.
S {n} people took part.
"""
