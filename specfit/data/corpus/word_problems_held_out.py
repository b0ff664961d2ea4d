"""Templates of the three held-out splits (form: see problem_template.py)."""

from __future__ import annotations

DEVELOPMENT = """
@ candle_packs
# n=3..12 k=4..12 u=5..30 p=2..8 where u<n*k
{N} orders {n} packs of candles with {k} in a pack. {u} of them [are used|burn down] [at a
  {event1}|during a power cut], and {M} buys the others for ${p} each.
? [How much does {M} pay?|How many dollars does {N} receive?]
> a=n*k : {N} orders {=} candles.
> b=a-u : {=} are left.
> c=b*p : {M} pays {=d}.
@ hiking_pace
# a=3..5 h=2..6 d=2..9 b=2..3
{N} hikes for {h} hours at {a} miles an hour. [After a break|When the path gets steep] {he} slows
  down by {b} miles an hour and walks {d} more hours.
? [How many miles does {he} hike?|How far does {N} walk in all?]
> x=a*h : the first part is {=} miles.
> y=a-b : then the speed is {=} miles an hour.
> z=y*d : the second part is {=} miles.
> t=x+z : in all {he} hikes {=} miles.
@ fish_tanks
# t=3..9 f=5..20 s=4..30 q=2..5 where s<t*f
A pet shop has {t} tanks with {f} fish in each. [On {day}|In one week] {s} fish are sold, and the
  owner, {N}, [orders|buys] {q} times that number.
? How many fish does the shop have then?
> a=t*f : at first there are {=} fish.
> b=a-s : after the sale there are {=} fish.
> c=s*q : the order is {=} fish.
> d=b+c : the shop then has {=} fish.
@ choir_rows
# r=4..12 k=6..15 b=2..4 g=r*k/b where r*k%b==0
A choir stands in {r} rows of {k} singers. One out of every {b} is a child[| from {town}].
? [How many adults sing in the choir?|How many singers are not children?]
> a=r*k : there are {=} singers.
> c=a/b : {=} of them are children.
> d=a-c : {=} are adults.
@ subscription
# p=6..30 m=4..12 f=2..5 d=10..50 where p*m>d and f<p
{N} pays ${p} a month for a music service. A yearly plan for {m} months [costs ${d} less|is ${d}
  cheaper][, and {his} {relative} pays half of it|; {his} {relative} pays half].
? How much does {N} pay for the yearly plan?
> a=p*m : month by month it costs {=d}.
> b=a-d : the yearly plan costs {=d}.
> c=b/2 : {N} pays {=d}.
@ wall_tiles
# l=4..20 w=3..12 p=2..9 x=5..40
A floor is {l} feet long and {w} feet wide. {N} covers it with tiles of one square foot that cost
  ${p} each, and [glue|a tool] for the work costs ${x}.
? [How much does the floor cost?|What are the total costs in dollars?]
> a=l*w : the floor has {=} square feet.
> b=a*p : the tiles cost {=d}.
> c=b+x : the floor costs {=d}.
"""

CALIBRATION = """
@ honey_jars
# h=3..15 k=4..12 g=3..20 p=4..12 where h*k>g
{N} keeps {h} hives of bees. A hive gives {k} jars of honey[ in {month}| this year]. {g} jars are
  [gifts|given away], the others cost ${p} each.
? [How much money does the honey bring?|How many dollars does {N} make?]
> a=h*k : the hives give {=} jars.
> b=a-g : {he} can sell {=} jars.
> c=b*p : the honey brings {=d}.
@ photo_album
# a=8..30 b=2..8 e=10..60 f=3..9 where a*b>e
An album has {a} pages, and {b} photos fit on a page. {N} [has put in|has already glued in] {e}
  photos.
{M} [brings|finds] {f} old photos, and they go into the album too.
? How many more photos fit in the album?
> x=a*b : the album holds {=} photos.
> y=e+f : {=} photos are in it.
> z=x-y : there is room for {=} more.
@ swimming_laps
# l=10..40 d=3..6 m=20..50..5 g=100..900..100
{N} swims {l} laps a day on {d} days of the week. One lap is {m} meters. {his} {relative} swims
  {g} meters [less|fewer] in that time.
? [How many meters does the other swimmer cover?|How far does that relative swim in a week, in
  meters?]
> a=l*d : {N} swims {=} laps.
> b=a*m : that is {=} meters.
> c=b-g : the other one swims {=} meters.
@ ribbon_cut
# n=3..12 c=4..20 r=10..50 k=2..6 t=n*c+r
{N} has a ribbon of {t} inches. {he} cuts off {n} pieces of {c} inches[| for {goods1}] and [then
  cuts the rest into {k} equal parts|divides what remains into {k} equal parts].
? How long is each of the equal parts?
> a=n*c : the pieces use {=} inches.
> b=t-a : {=} inches remain.
> d=b/k : each part is {=} inches long.
@ charity_run
# k=4..20 s=3..15 p=2..6 b=20..100..10
{s} sponsors [promise|agree] to pay ${p} for every mile that {N} runs. {he} runs {k} miles [in the
  {weather} weather|], and the town adds ${b}.
? [How much money is collected?|How many dollars does the run raise?]
> a=s*p : each mile is worth {=d}.
> c=a*k : the sponsors pay {=d}.
> d=c+b : in all {=d} is collected.
@ mixing_paint
# r=2..6 b=2..6 t=3..12 p=3..12 g=(r+b)*t
{N} mixes {r} parts of {color1} paint with {b} parts of {color2} paint. {he} needs {g} liters of
  the mixture[| to paint the {place}], and the {color1} paint costs ${p} a liter.
? How much does the {color1} paint cost?
> a=r+b : there are {=} parts.
> c=g/a : one part is {=} liters.
> d=c*r : {he} needs {=} liters of {color1} paint.
> e=d*p : it costs {=d}.
"""

EVALUATION = """
@ parking_meter
# n=5..30 f=2..6 h=2..8 e=2..9 x=3..12
A parking lot charges ${f} for the first hour and ${e} for [each|every] further hour. {n} cars
  stay for {x} hours[| on {day}].
? [How much does the lot take in?|How many dollars do the drivers pay altogether?]
> a=x-1 : there are {=} further hours.
> b=a*e : they cost {=d}.
> c=b+f : one car pays {=d}.
> d=c*n : all the cars pay {=d}.
@ beads_necklace
# n=3..12 a=10..30 b=5..20 h=20..90 where (a+b)*n>h
{N} makes {n} necklaces. A necklace needs {a} {color1} beads and {b} {color2} beads. {he} [already
  has|owns] {h} beads[| in a tin].
? How many beads must {he} still buy?
> x=a+b : one necklace needs {=} beads.
> y=x*n : all of them need {=} beads.
> z=y-h : {he} must buy {=} beads.
@ movie_night
# a=2..6 c=2..6 p=8..16 d=2..5 s=4..9 where d<p
[{a} adults and {c} children|A group of {a} adults and {c} children] go to the movies. [A ticket
  for an adult is|Adults pay] ${p}, and a child's ticket costs ${d} less. {N} buys popcorn for
  everyone at ${s} each.
? [How much is spent in total?|How many dollars does the evening cost?]
> e=a*p : the adults' tickets cost {=d}.
> f=p-d : a child pays {=d}.
> g=c*f : the children's tickets cost {=d}.
> h=a+c : there are {=} people.
> k=h*s : the popcorn costs {=d}.
> t=e+g+k : in total that is {=d}.
@ tree_planting
# t=4..15 d=3..9 v=2..8 l=10..40 where t*v*d>l
{v} volunteers each plant {t} trees a day near {town}[, led by {N}|]. They work for {d} days, but
  {l} trees do not grow.
? How many trees grow?
> a=v*t : in a day they plant {=} trees.
> b=a*d : in {d} days they plant {=} trees.
> c=b-l : {=} trees grow.
@ phone_minutes
# b=100..500..50 u=10..40 d=5..30 c=2..6 where u*d>b
A phone plan has {b} free minutes a month. {N} talks {u} minutes a day for {d} days. [Each extra
  minute|Every minute over the limit] costs {c} cents.
? [How many cents does {he} pay for extra minutes?|How much, in cents, do the extra minutes cost?]
> x=u*d : {he} talks {=} minutes.
> y=x-b : {=} of them are extra.
> z=y*c : they cost {=} cents.
@ puzzle_pieces
# n=2..6 k=100..500..50 d=2..9 h=20..90
{N} has {n} puzzles with {k} pieces each. {he} and {M} [place|fit] {h} pieces an hour and work {d}
  hours.
? How many pieces are not yet placed?
> a=n*k : the puzzles have {=} pieces.
> b=h*d : they place {=} pieces.
> c=a-b : {=} pieces are not placed.
"""
