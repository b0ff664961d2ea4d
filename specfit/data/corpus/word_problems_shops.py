"""Train templates: shops and prices (form: see problem_template.py)."""

from __future__ import annotations

SHOPS = """
@ bake_trays
# a=3..12 b=4..15 e=3..20 p=2..6 where e<a*b
[{N} bakes|In the morning, {N} bakes] {a} trays of {treat1}[, with {b} on each tray|. Each tray
  holds {b} {treat1}].
~ {he} [keeps {e} of them for {his} family|gives {e} of them to {his} {relative}|burns {e} of them
  by accident].
~ [the price is ${p} each|every one of the {treat1} sold costs ${p}|customers pay ${p} for each
  one].
? [How much money does {N} make if {he} sells all the rest?|If {N} sells the rest, how many
  dollars does {he} earn?|How much does {N} earn from the {treat1} that are left?]
> t=a*b : [{N} bakes|there are|the trays hold] {=} {treat1}[| in total| altogether].
> l=t-e : [{he} has {=} {treat1} left to sell|that leaves {=} {treat1}|the number for sale is
  {=}].
> m=l*p : [{he} earns|{N} makes|selling them brings in] {=d}.
@ two_goods
# a=2..9 b=2..9 p=3..25 q=3..25 x=50..600..50 where a*p+b*q<x and p!=q
{N} goes to the {shop} [with ${x}|with ${x} in {his} pocket|and has ${x} to spend].
~ {he} [buys|picks out|pays for] {a} {goods1} [at ${p} each|that cost ${p} each|for ${p} apiece].
~ {he} [also buys|takes|adds] {b} {goods2} [at ${q} each|for ${q} each|, each priced at ${q}].
? [How much money does {N} have left?|How many dollars are left after the shopping?|What change
  does {he} get back?]
> c=a*p : the {goods1} cost {=d}.
> d=b*q : the {goods2} cost {=d}.
> t=c+d : [together|altogether|in total], {he} [spends|pays] {=d}.
> l=x-t : {he} has {=d} left.
@ discount_one
# p=20..400..20 d=5..50..5 n=2..6
[A {garment1} sale|The sale at the {shop}] [takes {d}% off everything|offers a discount of
  {d}%|lowers every price by {d}%].
{N} [buys|wants] {n} {garment1} [that normally cost ${p} each|with a regular price of ${p} each].
? [How much does {he} pay in total?|What is the total price after the discount?|How many dollars
  does {N} spend?]
> r=p*d/100 : the discount on each is {=d}.
> s=p-r : [so each one costs|the sale price is] {=d}.
> t=s*n : [for {n} {garment1} {he} pays|the total is] {=d}.
@ fruit_stand
# a=20..90 b=20..90 p=2..5 q=2..5 s=4..19 where s<a and p!=q
{N} [runs|owns|looks after] a fruit stand near the {place}.
~ [one day {he} sells|in the morning {he} sells] {a} {fruit1} and {b} {fruit2}.
~ {fruit1} cost ${p} each and {fruit2} cost ${q} each.
[later, {s} of the {fruit1} are returned and {he} gives the money back|{s} of the {fruit1} turn
  out to be bad, so {he} pays back their price].
? [How much money does {N} keep?|How many dollars does the stand make?|What is the stand's
  income?]
> k=a-s : [the number of {fruit1} that stay sold is|for the {fruit1} we count] {=}.
> u=k*p : the {fruit1} bring in {=d}.
> v=b*q : the {fruit2} bring in {=d}.
> t=u+v : [the stand makes|{N} keeps] {=d}.
@ wholesale_profit
# n=3..15 k=6..24 c=20..90 p=5..20 where n*k*p>n*c
{N} buys {n} boxes of {goods1} [for ${c} a box|at ${c} per box|and pays ${c} for every box].
[there are {k} {goods1} in each box|each box contains {k} {goods1}], and {he} sells [each one|them
  one by one] for ${p}.
? [What is {his} profit?|How much profit does {N} make after selling all of them?|How much more
  does {he} earn than {he} spent?]
> x=n*c : the boxes cost {=d}.
> y=n*k : [{he} has|there are] {=} {goods1} to sell.
> z=y*p : [selling them all brings|{his} sales come to] {=d}.
> w=z-x : [{his} profit is|the profit comes to|{he} makes a profit of] {=d}.
@ coupon_meal
# a=2..8 p=6..24 d=2..9 q=2..6 c=5..15
{N} and {his} friends [eat lunch|have dinner|stop for a meal] [at a cafe|in a small
  restaurant|near the {place}].
~ they order {a} [sandwiches|bowls of soup|plates of pasta|burgers] [at ${p} each|for ${p} each].
~ [they also have|with the food they order] {d} glasses of {drink1} [at ${q} each|that cost ${q} a
  glass].
[{N} uses a coupon for ${c} off the bill|A coupon takes ${c} off the total].
? [How much do they pay?|What is the final bill?|How many dollars does the meal cost?]
> f=a*p : the food costs {=d}.
> g=d*q : the {drink1} costs {=d}.
> h=f+g : [before the coupon the bill is|the bill comes to] {=d}.
> b=h-c : [after the coupon|with the coupon] they pay {=d}.
@ flower_bunches
# n=4..20 m=5..12 k=2..9 p=4..15
[A florist in {town}|{N}, a florist,|The owner of a flower shop in {town}] makes {n} bouquets of
  {m} {flower1}
  [each|apiece].
{k} bouquets [wilt and cannot be sold|are given to the school for free|go to the hospital as a
  gift]. The others [sell for|cost|bring] ${p} each.
? [How many dollars does the shop make?|What does the shop earn?]
> r=n-k : [{=} bouquets are sold|the shop sells {=} bouquets].
> t=r*p : [these bring|the shop earns|together they bring] {=d}.
@ price_compare
# a=2..9 p=12..60 q=3..11 n=2..8 where p*a>q*a
At one {shop}, a [ticket|jacket|backpack|lamp|chair] costs ${p}. [Online|At another place|In the
  next town], the same thing is ${q} cheaper, but [shipping|delivery] costs ${n} [for the whole
  order|no matter how many are ordered].
{N} needs {a} of them.
? [How much does {he} pay if {he} orders the cheaper ones?|What is the total for the cheaper
  order?]
> r=p-q : the cheaper price is {=d}.
> s=r*a : {a} of them cost {=d}.
> t=s+n : with [shipping|delivery] the order costs {=d}.
@ lemonade_days
# a=8..30 x=3..20 m=2..4 p=2..4 c=5..40 where (a+x+m*a)*p>c
{N} sells {drink1} at a small stand. [On {day}|On the first day], {he} sells {a} cups.
~ [the next day|the day after], {he} sells {x} more cups [than on the first day|than the day
  before].
~ on the last day {he} sells {m} times as many cups as on the first day.
Each cup [costs|sells for] ${p}, and the [ingredients|supplies|cups and sugar] cost {N} ${c}.
? [How much profit does {N} make?|How many dollars does {he} have after paying for the supplies?]
> u=a+x : on the second day {he} sells {=} cups.
> v=m*a : on the last day {he} sells {=} cups.
> w=a+u+v : in all {he} sells {=} cups.
> y=w*p : [they bring in|{he} takes in] {=d}.
> z=y-c : [the profit is|after the supplies {he} has] {=d}.
@ packs_needed
# k=4..12 g=3..15 m=2..6 p=3..12 t=g*m/k where g*m%k==0
{N} is planning a {event1} for {g} guests. [Each guest|Every guest] [gets|will need|uses] {m}
  {treat1}.
The {treat1} come in packs of {k}[| at the {shop}], and [a pack costs|one pack is] ${p}.
? [How much does {N} spend on {treat1}?|How many dollars do the {treat1} cost?]
> n=g*m : {he} needs {=} {treat1}.
> b=n/k : that is {=} packs.
> c=b*p : the packs cost {=d}.
@ tax_and_tip
# p=40..300..20 t=5..20..5 s=10..25..5
[The bill for|A dinner for] {N} and {his} {relative} is ${p} [before tax|without tax and tip].
The tax is {t}% [of the bill|of that amount], and they leave a tip of {s}% of [the bill before
  tax|the original amount].
? [How much do they pay altogether?|What is the full cost of the dinner?]
> x=p*t/100 : the tax is {=d}.
> y=p*s/100 : the tip is {=d}.
> z=p+x+y : [altogether they pay|the dinner costs] {=d}.
@ returns_goods
# a=6..20 p=4..30 r=2..5 b=2..9 q=5..30 where a*p-r*p+b*q>0 and r<a
{N} [bought|ordered] {a} {goods1} for ${p} each. {he} [sent back|returned] {r} of them [because
  they were damaged|that {he} did not like|the next {day}] and got {his} money back.
[Then {he} bought|With some of the money {he} got] {b} {goods2} at ${q} each.
? [How much did {N} spend in all?|What was {his} total cost?]
> k=a-r : {N} keeps {=} {goods1}.
> x=k*p : they cost {=d}.
> y=b*q : the {goods2} cost {=d}.
> z=x+y : [in all {he} spent|the total is] {=d}.
@ crate_stock
# a=5..20 b=10..40 s=20..150 d=2..8 where s<a*b
[A {shop} receives|The {shop} in {town} gets] {a} crates of {fruit1} with {b} in every crate.
~ [by noon|on the first day], {s} {fruit1} [are sold|have been sold].
~ [the manager orders|in the evening a truck brings] {d} more crates [of the same size|with the
  same number of {fruit1}].
? [How many {fruit1} does the {shop} have now?|How many {fruit1} are in stock at the end?]
> x=a*b : the first crates hold {=} {fruit1}.
> y=x-s : after the sales there are {=} left.
> z=d*b : the new crates hold {=} {fruit1}.
> w=y+z : [now there are|the stock is] {=} {fruit1}.
@ half_sold
# h=10..60 q=2..6 n=2*h p=3..15
{N} [makes|paints|builds] {n} {craft1} [to sell at the market|for a street fair|during the
  winter]. {he} sells half of them [for ${p} each|at a price of ${p}].
The other half [goes|is sold] for ${q} more per piece[| because people want gifts].
? [How much money does {N} get?|How many dollars does {he} take in?]
> k=n/2 : half of the {craft1} is {=}.
> x=k*p : the first half brings {=d}.
> y=p+q : the second half sells for {=d} each.
> z=k*y : the second half brings {=d}.
> t=x+z : [together that is|in total {he} gets] {=d}.
@ auction_gain
# p=20..90 n=2..6 r=5..25 s=60..200 where s*n>(p+r)*n
{N} buys {n} old [chairs|clocks|radios|mirrors|tables] for ${p} each and spends ${r} on repairs
  for each one.
Later [{he} sells every one|all of them are sold] for ${s}.
? [What is the total profit?|How much does {N} gain?]
> c=p+r : each one costs {him} {=d}.
> g=s-c : the gain on each is {=d}.
> t=g*n : [the profit on all {n} is|together {he} gains] {=d}.
"""
