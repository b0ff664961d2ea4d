"""Train templates: home, savings and sharing (form: see problem_template.py)."""

from __future__ import annotations

HOME = """
@ savings_weeks
# w=4..20 s=5..30 g=10..60 c=10..80 where w*s+g>c
{N} saves ${s} [every week|each week|a week] for {w} weeks[| to buy a {gadget1}].
~ {his} {relative} [gives {him}|adds] ${g} [as a present|for {his} birthday].
~ {he} [spends ${c} on {goods1}|has to pay ${c} for {goods1}|lends ${c} to {M}].
? [How much money does {N} have now?|How many dollars are left in {his} savings?]
> a=w*s : {he} saves {=d}.
> b=a+g : with the gift {he} has {=d}.
> d=b-c : [after that|once the money is gone] {he} has {=d}.
@ gadget_goal
# w=3..12 s=6..25 h=10..90 p=w*s+h
{N} [wants|dreams of buying|is saving for] a {gadget1} that costs ${p}. {he} already has ${h}.
{he} [earns|makes|gets] ${s} a week by {chore1}.
? [How many weeks must {he} work to buy it?|After how many weeks can {N} pay for the {gadget1}?]
> d=p-h : {he} still needs {=d}.
> n=d/s : [that takes|it takes {him}] {=} weeks.
@ toys_shared
# g=3..15 k=2..6 r=3..12 e=3..12 h=k*r+g
{N} has {h} {toy1}. {he} [gives|hands] {g} [of them |]to {his} {relative} and [shares the rest
  equally among|splits the others evenly between] {k} friends.
One of the friends, {M}, [already had|started with] {e} {toy1}.
? [How many {toy1} does {M} have now?|How many {toy1} does {M} end up with?]
> l=h-g : {N} has {=} {toy1} to share.
> s=l/k : each friend gets {=} {toy1}.
> t=s+e : {M} now has {=} {toy1}.
@ ages_sum
# a=7..16 m=3..5 d=2..9 y=2..10
{N} is {a} years old. {his} {elder1} is {m} times as old[ as {he} is|]. {M} is {d} years
  [younger|less old] than that.
? [How old will {M} be in {y} years?|What will {M}'s age be {y} years from now?]
> x=a*m : {his} {elder1} is {=} years old.
> z=x-d : {M} is {=} years old now.
> w=z+y : in {y} years {M} will be {=}.
@ reading_book
# p=8..40 d=3..9 q=10..50 e=2..6 l=20..120
{N} is reading a long book [about {subject}|from the library|that {M} gave {him}]. [For {d}
  days|During the first {d} days] {he} reads {p} pages a day.
[Then {he} reads|After that {he} manages] {q} pages a day for {e} days, and there are still {l}
  pages [to go|left].
? [How many pages does the book have?|How long is the book, in pages?]
> a=p*d : in the first days {he} reads {=} pages.
> b=q*e : in the next days {he} reads {=} pages.
> c=a+b : so far {he} has read {=} pages.
> t=c+l : the whole book has {=} pages.
@ recipe_scale
# s=2..6 c=2..5 k=2..7 g=s*k h=3..10 b=2..4
A recipe for {s} people [needs|uses|calls for] {c} cups of flour and {b} eggs. {N} wants to cook
  for {g} people[| at a {event1}].
{he} has [only {h}|{h}] cups of flour at home[| in a jar], [which is not enough|so {he} must buy
  more].
? How many more cups of flour does {N} need?
> x=g/s : {N} has to make the recipe {=} times.
> y=x*c : that takes {=} cups of flour.
> z=y-h : {he} needs {=} more cups.
@ garden_rows
# r=4..15 k=5..20 d=5..30 y=2..6 where d<r*k
{N} plants {r} rows of {crop1} [in the garden|behind the house|on a small field], with {k} plants
  in [every|each] row.
[Because of the {weather} weather|After a storm|Because of the snails], {d} plants die. Each
  [remaining|healthy|surviving] plant gives {y} {crop1}.
? [How many {crop1} does {N} harvest?|How many {crop1} can {he} pick?]
> a=r*k : {N} plants {=} plants.
> b=a-d : {=} plants [survive|are left].
> c=b*y : [they give|the harvest is] {=} {crop1}.
@ pet_food
# n=2..7 m=2..5 d=7..30 s=5..25 p=2..5
{N} [has|takes care of|keeps] {n} {pet1}. Each of them eats {m} [cups|cans|scoops] of food a day.
[{he} still has {s} of them in the cupboard|There are {s} left at home], and one costs ${p}[| at
  the {shop}].
? [How much will {he} spend to feed them for {d} days?|How many dollars does the extra food for
  {d} days cost?]
> a=n*m : the {pet1} need {=} a day.
> b=a*d : for {d} days that makes {=}.
> c=b-s : {he} has to buy {=}.
> e=c*p : the food costs {=d}.
@ party_bags
# g=5..24 c=2..6 b=2..5 p=10..60 t=g*(c+b)
For a {event1}, {N} fills {g} bags. [In each bag {he} puts|Each bag gets] {c} {toy1} and {b}
  {treat1}.
{he} [had|started with] {p} more [things|items] than {he} needed [for the bags|].
? [How many things did {N} have at the beginning?|How many items did {he} start with?]
> k=c+b : each bag holds {=} things.
> m=k*g : all the bags hold {=} things.
> s=m+p : [at first {he} had|{he} started with] {=} things.
@ chores_week
# a=2..6 p=5..15 b=2..6 q=4..20 h=2..4 x=10..60
{N} earns money [by {chore1}|at home|in the neighborhood]. [Every week {he} does|Each week there
  are] {a} small jobs for ${p} each and {b} large jobs for ${q} more than [a small one|the small
  ones] each.
? [How much does {he} earn in {h} weeks?|How many dollars does {N} make in {h} weeks?]
> u=a*p : the small jobs pay {=d}.
> v=p+q : a large job pays {=d}.
> w=b*v : the large jobs pay {=d}.
> y=u+w : in one week {he} earns {=d}.
> z=y*h : in {h} weeks {he} earns {=d}.
@ stickers_ratio
# a=8..40 m=2..5 d=3..15 g=2..20
{N} has {a} {toy1}. {M} has {m} times as many[ as {N}|]. Their friend has {d} fewer than {M}.
[Later {M} finds|{M} then buys] {g} more.
? [How many {toy1} do the three have together?|How many {toy1} are there in total now?]
> b=a*m : {M} [has|starts with] {=} {toy1}.
> c=b-d : the friend has {=} {toy1}.
> e=b+g : {M} ends up with {=} {toy1}.
> t=a+c+e : together they have {=} {toy1}.
@ water_tank
# c=20..60 r=3..9 h=3..12 l=2..6 s=10..80 where r>l
A tank [in {N}'s garden|behind the barn|on the roof] holds {s} liters of water. A pump adds {r}
  liters [a minute|every minute], but {l} liters a minute [leak out|are lost through a crack].
? How many liters are in the tank after {c} minutes?
> g=r-l : the tank gains {=} liters each minute.
> t=g*c : in {c} minutes it gains {=} liters.
> w=t+s : it then holds {=} liters.
@ laundry
# n=3..9 a=3..8 w=2..5 k=7..28..7
There are {n} people in {N}'s house. Each [of them |]wears {a} [pieces of clothing|things] a day,
  and the washing machine holds {k} pieces at once.
? [How many loads are needed for {w} weeks of clothes?|How many times must {N} run the machine for
  {w} weeks of clothes?]
> x=n*a : they use {=} pieces a day.
> y=w*7 : {w} weeks have {=} days.
> z=x*y : that is {=} pieces.
> l=z/k : {N} needs {=} loads.
@ fraction_cake
# u=2..9 f=3..5 e=2..12 s=f*u*2
{N} cuts a [huge cake|tray of brownies|long sandwich] into {s} pieces. [The guests eat|At the
  {event1}, people eat] 1/{f} of the pieces, and {his} {relative} takes [half of what is left|half
  of the rest] home.
? [How many pieces remain?|How many pieces are left for {N}?]
> a=s/f : the guests eat {=} pieces.
> b=s-a : then there are {=} pieces.
> c=b/2 : half of that is {=}.
> d=b-c : {=} pieces remain.
@ sleep_hours
# a=6..8 b=9..11 w=2..8
On school nights, {N} sleeps {a} hours. On [the two weekend nights|Fridays and Saturdays], {he}
  sleeps {b} hours.
? [How many hours does {he} sleep in {w} weeks?|How much sleep, in hours, does {N} get in {w}
  weeks?]
> x=a*5 : on school nights {he} sleeps {=} hours.
> y=b*2 : on the weekend {he} sleeps {=} hours.
> z=x+y : that is {=} hours a week.
> t=z*w : in {w} weeks {he} sleeps {=} hours.
"""
