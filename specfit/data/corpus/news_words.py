"""Word lists and shared sentences of the news reports, all of them invented."""

from __future__ import annotations

from itertools import product

from specfit.data.corpus.words import DAYS, MEN, MONTHS, SURNAMES, TOWNS, WOMEN, _list

_FIRM_HEADS = _list("""Alto, Apex, Arc, Axi, Borea, Candor, Cirro, Corvi, Delta, Dyna, Ever, Ferro,
    Giga, Halo, Helio, Indi, Juno, Kine, Lumi, Magna, Meri, Nova, Omni, Orbi, Pala, Quanta, Rova,
    Sola, Stria, Terra, Umbra, Veri, Vanta, Xeno, Zephy""")
_FIRM_TAILS = _list("""bank, cast, com, core, craft, dyne, flow, form, gen, grid, lane, lex, line,
    link, mark, mart, med, mix, nex, pack, path, ris, scope, tech, tron, vance, ware, works, zon""")
_FIRM_KINDS = _list("""Group, Holdings, Industries, Partners, Foods, Systems, Energy, Motors,
    Logistics, Laboratories, Pharma, Airlines, Mining, Textiles, Software, Steel, Media, Retail""")

NEWS_WORDS: dict[str, list[str]] = {
    "town": TOWNS,
    "day": DAYS,
    "month": MONTHS,
    "surname": SURNAMES,
    "first": WOMEN + MEN,
    "firm": [a + b + " " + c for a, b, c in product(_FIRM_HEADS, _FIRM_TAILS, _FIRM_KINDS)],
    "county": [
        a + b
        for a, b in product(
            _list(
                "Al, Bren, Cor, Dor, Es, Fal, Gran, Hel, Is, Kar, Lor, Mon, Nar, Or, Per, Sor, Tal"
            ),
            _list("dell, dria, mark, nia, rick, shire, sten, tavia, thia, vany, vell, wyn"),
        )
    ],
    "time": _list("""early in the morning, shortly before noon, late in the evening, after midnight,
        just after dawn, in the early afternoon, at lunchtime, before sunrise, around dusk"""),
    "adj": _list("""careful, serious, unusual, costly, modest, hopeful, difficult,
        remarkable, narrow,
        clear, sudden, patient, bitter, fair, honest, practical, bold, quiet, historic, painful,
        steady, welcome, surprising, ambitious, delicate, urgent, sensible, fragile, generous,
        confusing, ordinary, overdue, thorough, risky, simple, crucial, private, lasting"""),
    "adv": _list("""quickly, quietly, openly, carefully, slowly, firmly, gladly,
        repeatedly, finally,
        barely, publicly, gradually, strongly, partly, plainly, briefly, eagerly, calmly"""),
    "thing": _list("""plan, decision, result, effort, question, problem, change, moment, project,
        answer, story, chance, lesson, risk, step, delay, debate, promise, idea, success, response,
        setback, opportunity, agreement, mistake, warning, beginning, compromise, challenge"""),
    "people": _list("""families, neighbors, workers, visitors, students, shop owners, residents,
        volunteers, farmers, parents, drivers, critics, supporters, experts, nurses, pensioners,
        young people, teachers, officials, commuters, local leaders, business owners, tourists"""),
    "feel": _list("""proud, worried, relieved, tired, surprised, grateful, angry, cautious, excited,
        disappointed, nervous, confident, curious, exhausted, optimistic, shocked, encouraged"""),
    "want": _list("""clear answers, more time, better roads, lower prices, a second opinion, safer
        streets, honest numbers, steady jobs, a fair hearing, new rules, public support, real
        progress, a written promise, more training, cleaner water, an independent review"""),
    "did": _list("""studied, questioned, followed, praised, discussed, criticized,
        reviewed, accepted,
        expected, ignored, supported, feared, remembered, understood, welcomed, doubted"""),
    "place": _list("""town hall, railway station, old harbor, main square, public library, hospital,
        high school, river bank, market hall, fire station, city park, sports ground, bus depot,
        post office, community center, church, university campus, airport road, northern bridge"""),
    "job": _list("""teacher, baker, nurse, retired engineer, student, taxi driver,
        farmer, carpenter,
        librarian, shopkeeper, plumber, musician, electrician, cook, bus driver, gardener, dentist,
        journalist, firefighter, hairdresser, mechanic, architect, lawyer, fisherman"""),
    "weather": _list("""light rain, strong winds, thick fog, bright sunshine, heavy snow, freezing
        temperatures, summer heat, grey skies, a cold breeze, scattered showers, drizzle"""),
    "paper": _list("""Courier, Gazette, Herald, Post, Observer, Chronicle, Tribune, Examiner, Star,
        Sentinel, Mirror, Dispatch"""),
    "reason": _list("""nobody had expected it, the weather was poor, money is short, the
        figures were
        late, the law had changed, the old rules no longer worked, the experts disagreed, many jobs
        depend on it, winter is near, two earlier attempts had failed, the public asked for it,
        time was running out, the costs kept rising, the region has few alternatives"""),
    "say": _list("said, said, said, explained, recalled, added, noted, insisted, argued"),
    "sum": _list("""thousand, hundred thousand, million, million, million"""),
}

QUOTES = (
    "this is a {adj} {thing} for [{town1}|all of us|the {people}]",
    (
        "we are {feel}, but [we also know|nobody should forget] that a {adj} {thing} [lies "
        "ahead|remains]"
    ),
    "{people} [need|want|deserve|have asked for] {want}, and [we heard them|they have a point]",
    "I have never seen such a {adj} {thing} [in my life|in all my years here|anywhere]",
    "it was a {adj} {thing}, and everybody {adv} {did} it",
    "[honestly|frankly], I am {feel} because {reason}",
    "we [will not|cannot|should not] [wait|stop|give up] [now|any longer], even if it is {adj}",
    (
        "[some|many|most] {people} are {feel}, [others|some] are {feel}, and [both|all] have "
        "{adj} reasons"
    ),
    "if {people} [work|stand|stay] together, [even|] a {adj} {thing} [can be solved|is possible]",
    "what {people} want is {want}, not another {adj} {thing}",
    "[my family|my team|everyone I know] {did} this {thing} [for months|from the start|all week]",
    "there is [no|hardly any] {adj} way to [explain|describe|repeat] this {thing}",
    "[yesterday|today] we were {feel}; [tomorrow|next week] the {adj} work [begins|continues]",
)
FILLER = (
    (
        "{people} at the {place} [{adv} {did}|{did}] the {thing}[, while others [stayed "
        "away|kept silent]|]."
    ),
    "the {town1} {paper} [called it|described it as|spoke of] a {adj} {thing}.",
    (
        "[despite|because of] {weather}, [dozens of|many|a few] {people} "
        "[gathered|waited|met] near the {place}."
    ),
    (
        "[for years|in recent months|since last {month}], {people} [in {county1}|in the "
        "region] have [demanded|asked for|hoped for] {want}."
    ),
    (
        "the region of {county1}[, where {reason},|] has [seen|known] "
        "[better|worse|calmer|harder] [times|years]."
    ),
    "[similar|comparable] events in {town} [and {town} |][ended|began] with a {adj} {thing}.",
    (
        "[not everyone|hardly anyone|almost everyone] was {feel}: {first} {surname}, a {job}, "
        "{did} the {thing} {adv}."
    ),
    (
        "{first} {surname}, a {job} from {town}, [said|admitted] {reason} and [hoped "
        "for|called for] {want}."
    ),
    "[although|while] {people} were {feel}, {people} {adv} {did} the {thing}.",
    (
        "[officials|observers|experts] [warned|pointed out|noted] that {reason}[, although "
        "the {thing} looked {adj}|]."
    ),
    "it is [not yet clear|still open|unknown] whether {people} will get {want}.",
    "a {job} who [lives|works] near the {place} [was {feel}|{adv} {did} the {thing}].",
    (
        "[earlier|later] [this|that] week, {people} [in|from] {town} had [already|again] "
        "{did} a {adj} {thing}."
    ),
    (
        "[a survey|a poll|a letter] in the {paper} [showed|suggested] that {people} [are "
        "{feel}|want {want}]."
    ),
    (
        "what [began|started] as a {adj} {thing} [soon|later|gradually] became a {adj} "
        "{thing}, [since|because] {reason}."
    ),
    (
        "{first} {surname}, who [works|has worked] as a {job} [near the {place}|in "
        "{county1}|for years], was {feel}."
    ),
    (
        "[most|few|some] {people} [remember|forget|mention] the {adj} {thing} of last "
        "{month}, when {reason}."
    ),
    (
        "[without|instead of] {want}, [one {job}|a {job}] said, the {thing} [will "
        "remain|could become] {adj}."
    ),
    (
        "[to {people}|for {people}], it [seemed|felt] like a {adj} {thing}; to {people}, like "
        "a {adj} {thing}."
    ),
    (
        "[meanwhile|at the same time|in the meantime], {weather} [kept|sent] {people} away "
        "from the {place}."
    ),
    (
        "[asked about|speaking of] {want}, {first} {surname} of the {town1} {paper} wrote "
        "that {reason}."
    ),
    (
        "on {day} evening, [a group of |]{people} [met|sat] at the {place} and {did} the "
        "{adj} {thing}."
    ),
)
