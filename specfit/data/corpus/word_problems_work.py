"""Train templates: work, trips, farms and sports (form: see problem_template.py)."""

from __future__ import annotations

WORK = """
@ hourly_pay
# r=8..30 a=4..9 b=3..8 d=2..6 e=2..5 x=10..90
{N} works [at a {shop}|in an office|at the {place}] and [earns|is paid|makes] ${r} an hour. [From
  Monday on|This week] {he} works {a} hours a day for {d} days and {b} hours a day for {e} more
  days.
[{he} spends ${x} on bus tickets|${x} is taken away for lunch|A new uniform costs {him} ${x}].
? [How much money is left?|How much does {N} take home?]
> p=a*d : {he} works {=} hours in the first days.
> q=b*e : {he} works {=} hours in the other days.
> h=p+q : [in total|altogether] {he} works {=} hours.
> m=h*r : {he} earns {=d}.
> l=m-x : [what is left is|{he} takes home] {=d}.
@ trip_legs
# s=30..80..5 t=2..6 u=20..70..5 v=2..5 k=40..200..10
{N} [drives|takes a {vehicle}|travels] from {town1} to {town2}. [For the first {t} hours|In the
  first {t} hours] the speed is {s} miles per hour, and for [the next|another] {v} hours it is {u}
  miles per hour.
[There are then {k} miles left|At that point {town2} is still {k} miles away].
? [How long is the whole trip, in miles?|How many miles is it from {town1} to {town2}?]
> a=s*t : the first part is {=} miles.
> b=u*v : the second part is {=} miles.
> c=a+b : so far {he} has covered {=} miles.
> d=c+k : the whole trip is {=} miles.
@ overtime
# r=8..24 h=30..40 o=2..12 m=2..3 w=2..6
{N} is paid ${r} per hour for the first {h} hours of a week. [Any extra hour|Every hour of
  overtime] pays {m} times as much.
[For {w} weeks in a row|During {w} busy weeks] {he} works {o} extra hours [a week|each week][|
  because the {relative} is sick].
? How much does {N} earn in those {w} weeks?
> a=r*h : the normal hours pay {=d} a week.
> b=r*m : an extra hour pays {=d}.
> c=b*o : the overtime pays {=d} a week.
> d=a+c : each week {he} earns {=d}.
> e=d*w : in {w} weeks that is {=d}.
@ school_buses
# c=3..9 s=18..32 t=6..20 k=20..50 n=(c*s+t)/k p=60..200..10 where (c*s+t)%k==0
{c} classes from {town} with {s} students each go on a trip to the {place}, together with {t}
  teachers. A bus
  [holds|has seats for|can carry] {k} people, [and|while] renting one costs ${p}.
? [How much do the buses cost, if every seat is used?|How many dollars does the school pay for
  full buses?]
> a=c*s : there are {=} students.
> b=a+t : with the teachers that makes {=} people.
> d=b/k : they need {=} buses.
> e=d*p : the buses cost {=d}.
@ factory_units
# m=3..12 u=10..60 h=4..10 d=3..30
A factory [in {town}|near {town}] has {m} machines. Each [machine|one] makes {u} {goods1} an hour
  and runs {h} hours a day.
[Every day|Each day] {d} {goods1} [fail the test|are broken|have to be thrown away].
? [How many good {goods1} are made in a day?|How many {goods1} can the factory sell each day?]
> a=m*u : in one hour the machines make {=} {goods1}.
> b=a*h : in a day they make {=} {goods1}.
> c=b-d : {=} of them are good.
@ farm_eggs
# h=10..60 e=2..6 k=5..30 p=2..6 w=2..5 z=(h*e-k)/12 where (h*e-k)%12==0 and h*e>k
{N} has {h} hens[ on a farm near {town}|]. [Each hen|Every hen] lays {e} eggs a week. {his} family
  eats {k} eggs [a week|every week], and the rest are sold for ${p} a dozen.
? [How much does {N} earn from the eggs in {w} weeks?|How many dollars do the eggs bring in {w}
  weeks?]
> a=h*e : the hens lay {=} eggs a week.
> b=a-k : {=} of them are sold.
> c=b/12 : that is {=} dozen.
> d=c*p : in one week {he} earns {=d}.
> f=d*w : in {w} weeks {he} earns {=d}.
@ field_milk
# c=4..30 l=5..25 k=10..60 p=2..4 d=2..9 where c*l>k
{N} owns {c} {animal1}, and [each animal|each of them] gives {l} liters of milk a day. [Every
  day|Each day], {k} liters [are used to make cheese|stay on the farm].
The rest of the milk is sold [for ${p} a liter|at ${p} per liter].
? [How much does the farm earn from milk in {d} days?|How many dollars does {N} get in {d} days?]
> a=c*l : the {animal1} give {=} liters a day.
> b=a-k : {=} liters are sold.
> e=b*p : one day brings {=d}.
> f=e*d : {d} days bring {=d}.
@ game_points
# a=4..15 b=2..9 c=2..8 d=3..20
In a {game} [game|match] with special rules, a short shot is worth 2 points and a long shot 3
  points. {N} makes {a} short shots and {b} long ones.
{M} scores {d} more points than {N}.
? How many points do {N} and {M} score together?
> x=a*2 : the short shots give {=} points.
> y=b*3 : the long shots give {=} points.
> z=x+y : {N} scores {=} points.
> w=z+d : {M} scores {=} points.
> t=z+w : together they score {=} points.
@ season_tickets
# g=5..20 a=100..900..50 p=4..20 x=500..5000..100 where g*a*p>x
A {game} team plays {g} home games[ in {town}|]. [On average|For each game], {a} people buy a
  ticket for ${p}. The team pays ${x} [for the stadium|in rent] for the season.
? [How much money is left for the team?|What does the team keep?]
> t=g*a : the team sells {=} tickets.
> m=t*p : the tickets bring {=d}.
> k=m-x : the team keeps {=d}.
@ work_rate_walls
# a=3..12 b=2..10 h=2..8 r=5..40
{N} can [paint|build|pack|fold] {a} [boxes|panels|boards] an hour, and {M} does {b} an hour. They
  work together for {h} hours. {r} [pieces|of the pieces] were already done [before they began|the
  day before].
? [How many pieces are finished in the end?|How many are done in total?]
> x=a+b : together they do {=} in an hour.
> y=x*h : in {h} hours they do {=}.
> z=y+r : in the end {=} are finished.
@ rental_bikes
# f=5..30 h=3..12 t=2..9 n=2..6 d=2..10
Renting a [boat|bicycle|scooter|canoe] [at the {place}|in {town}] costs a fee of ${f} plus ${h}
  for each hour. {N} and {his} friends rent {n} for {t} hours, and [each person|each of them] also
  pays ${d} for insurance.
? How much does the group of {n} pay in total?
> a=h*t : the hours cost {=d} each.
> b=a+f+d : [one person pays|each pays] {=d}.
> c=b*n : the group pays {=d}.
@ queue_people
# a=20..90 b=3..9 t=4..12 c=2..8 where c<b and a>(b-c)*t
There are {a} people [in line|waiting] [at the {place}|in front of the {shop}]. Every minute {b}
  people [go in|are served], and {c} new people [join the line|arrive].
? [How many people are waiting after {t} minutes?|How long is the line, in people, after {t}
  minutes?]
> x=b-c : the line gets shorter by {=} people a minute.
> y=x*t : in {t} minutes that is {=} people.
> z=a-y : {=} people are waiting.
@ bus_stops
# a=15..45 u=3..12 v=4..15 w=2..9 p=2..4
A {vehicle} leaves {town1} with {a} passengers. At the first stop {u} [get off|leave] and {v} get
  on. At the second stop twice as many people get on [as got off before|as left at the first
  stop], and {w} get off.
? [How many passengers are on board then?|How many people ride on after the second stop?]
> b=a-u+v : after the first stop there are {=} passengers.
> c=u*2 : at the second stop {=} people get on.
> d=b+c-w : now there are {=} passengers.
@ library_shelves
# s=5..20 k=15..40 o=20..90 n=2..8
The library [in {town}|near {N}'s house] has {s} shelves with {k} books on each. {o} books are
  [out on loan|being repaired|borrowed by a school] and {N} [donates|brings] {n} boxes of 10
  books.
[Before this|At first], every shelf was full.
? [How many books are in the library now?|How many books does the library have on hand?]
> a=s*k : the shelves hold {=} books.
> b=a-o : without the missing ones there are {=} books.
> c=n*10 : {N} brings {=} books.
> d=b+c : now there are {=} books.
@ salary_budget
# s=1200..4800..200 r=20..40..10 f=5..20..5 m=2..8
{N} earns ${s} a month. {he} [spends|pays] {r}% of it on rent and {f}% on food[, and saves the
  rest|. The rest is saved].
? [How much does {he} save in {m} months?|How many dollars are saved after {m} months?]
> a=s*r/100 : rent costs {=d}.
> b=s*f/100 : food costs {=d}.
> c=a+b : together that is {=d}.
> d=s-c : each month {he} saves {=d}.
> e=d*m : in {m} months {he} saves {=d}.
@ fuel_cost
# k=20..50..5 n=3..12 p=2..6 t=2..5 d=k*n
{N}'s [car|van|truck|motorcycle|camper] goes {k} miles on one gallon of fuel. For {his} job, {he}
  drives {d} miles [every
  week|a week].
[A gallon costs|The price of a gallon is] ${p}.
? [How much does the fuel for {t} weeks cost?|What does {N} pay for fuel in {t} weeks?]
> a=d/k : {he} needs {=} gallons a week.
> b=a*p : one week costs {=d}.
> c=b*t : {t} weeks cost {=d}.
"""
