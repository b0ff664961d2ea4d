"""Word lists of both generators. Entries may use the grammar of `grammar.py`."""

from __future__ import annotations

from itertools import product


def _list(text: str) -> list[str]:
    return [word.strip() for word in text.replace("\n", " ").split(",") if word.strip()]


WOMEN = _list("""
Ada, Alice, Amira, Anna, Beatriz, Bella, Bridget, Carla, Chloe, Clara, Dana, Daphne, Diana, Elena,
Elsie, Emma, Esther, Fatima, Fiona, Freya, Gina, Grace, Greta, Hana, Hazel, Helen, Imani, Ingrid,
Irene, Isla, Ivy, Jana, Jasmine, Joan, Julia, Kaya, Keiko, Kiara, Lara, Leila, Lena, Lucy, Maria,
Maya, Mei, Mila, Mina, Nadia, Naomi, Nina, Nora, Olga, Olive, Paula, Pearl, Petra, Priya, Rita,
Rosa, Ruth, Sadie, Sara, Selma, Sofia, Stella, Tara, Tessa, Thea, Uma, Vera, Wanda, Yara, Zoe,
Abigail, Brenda, Candace, Deborah, Erica, Felicia, Gloria, Heather, Janet, Kelly, Lauren, Megan,
Natalie, Octavia, Pamela, Rachel, Sandra, Tina, Valerie, Wendy, Yolanda""")
MEN = _list("""
Aaron, Abdul, Adrian, Alan, Amir, Anton, Arjun, Basil, Ben, Boris, Bruno, Caleb, Carlos, Cyrus,
Daniel, David, Diego, Dylan, Eddie, Elias, Emil, Ethan, Felix, Finn, Frank, George, Gus, Hamid,
Harry, Hugo, Ian, Isaac, Ivan, Jack, Jamal, James, Jonas, Jorge, Karl, Kenji, Kofi, Lars, Leo,
Liam, Luis, Marco, Martin, Max, Miguel, Milo, Nathan, Neil, Noah, Omar, Oscar, Otto, Pablo, Paul,
Pedro, Peter, Quentin, Rafael, Raj, Remy, Robert, Ronan, Sam, Sanjay, Sean, Simon, Stefan, Tariq,
Theo, Tom, Tyler, Victor, Walter, Will, Yusuf, Zach, Andre, Brian, Craig, Derek, Ernest, Fred,
Gordon, Howard, Jerome, Kevin, Leonard, Mitchell, Norman, Patrick, Russell, Stanley, Terrence""")

_SURNAME_HEADS = _list("""
Al, Bar, Bel, Bor, Brad, Cal, Car, Cor, Dal, Der, Dor, El, Fal, Far, Gar, Gil, Hal, Har, Hol, Kel,
Ker, Lan, Lor, Mal, Mar, Mor, Nor, Or, Pel, Per, Quin, Ral, Ros, Sal, Sel, Tal, Tor, Ul, Van, Wal,
Wes, Win, Yar, Zel, Ash, Brook, Crow, Drum, Fen, Marsh""")
_SURNAME_TAILS = _list("""
ano, berg, by, cott, den, dez, ell, enko, er, ett, ford, ham, ide, ing, ington, ini, ley, lin,
lock, low, man, mer, mond, more, nak, ner, oni, ova, owski, rick, row, sen, ski, son, stad, ston,
tani, ter, ton, vale, vin, ward, well, wick, worth""")
SURNAMES = [a + b for a, b in product(_SURNAME_HEADS, _SURNAME_TAILS)]

_TOWN_HEADS = _list("""
Alder, Amber, Arn, Ash, Beck, Birch, Black, Bran, Brook, Cald, Cedar, Clay, Cold, Crest, Dun, East,
Elm, Fair, Fern, Glen, Gold, Grey, Hart, Haver, Haw, High, Holl, Iron, Kings, Lake, Lang, Lind,
Maple, Mar, Mill, North, Oak, Pine, Quarry, Raven, Red, River, Rock, Salt, Sand, Silver, South,
Stone, Thorn, Tide, Under, West, White, Wil, Wolf""")
_TOWN_TAILS = _list("""
borough, bridge, burn, bury, by, cliff, combe, creek, dale, field, ford, gate, grove, haven, hurst,
ley, market, mere, mont, moor, mouth, point, port, ridge, shore, side, stead, ton, vale, view,
ville, water, well, wick, wood, worth""")
TOWNS = [a + b for a, b in product(_TOWN_HEADS, _TOWN_TAILS)]

DAYS = _list("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
MONTHS = _list("""January, February, March, April, May, June, July, August, September, October,
November, December""")

# The word problems' lists. Plural things unless the key says otherwise.
PROBLEM_WORDS: dict[str, list[str]] = {
    "town": TOWNS,
    "day": DAYS,
    "month": MONTHS,
    "treat": _list("""cookies, muffins, cupcakes, brownies, scones, bagels, biscuits, rolls, tarts,
        doughnuts, pretzels, pastries, buns, pancakes, waffles, macaroons"""),
    "fruit": _list("""apples, pears, oranges, peaches, plums, lemons, mangoes, bananas, melons,
        apricots, limes, kiwis, figs, grapefruits, pineapples"""),
    "crop": _list("""tomatoes, pumpkins, potatoes, carrots, onions, cabbages, peppers, cucumbers,
        radishes, turnips, beets, squashes, leeks"""),
    "flower": _list("""roses, tulips, daisies, lilies, orchids, sunflowers, marigolds, violets,
        carnations, pansies, irises, daffodils"""),
    "toy": _list("""marbles, stickers, stamps, toy cars, puzzles, comic books, trading cards, beads,
        shells, coins, balloons, kites, badges, figurines, yo-yos, dolls"""),
    "goods": _list("""notebooks, pens, mugs, candles, scarves, hats, belts, bracelets, lamps,
        baskets, umbrellas, posters, frames, pillows, towels, plates, bowls, necklaces, backpacks,
        keychains, water bottles, blankets, vases, gloves"""),
    "garment": _list("""shirts, jackets, dresses, sweaters, skirts, coats, vests, uniforms, aprons,
        costumes, pairs of jeans, pairs of socks, pairs of shoes"""),
    "gadget": _list("""bicycle, camera, guitar, telescope, tablet, phone, skateboard, drum set,
        laptop, tent, keyboard, watch, scooter, game console, sewing machine, kayak"""),
    "animal": _list("""cows, goats, sheep, horses, pigs, llamas, ponies, donkeys, alpacas"""),
    "pet": _list("""dogs, cats, rabbits, hamsters, parrots, turtles, guinea pigs, kittens"""),
    "drink": _list("""lemonade, orange juice, iced tea, apple cider, hot chocolate, coffee, milk,
        fruit punch, ginger beer, smoothies"""),
    "place": _list("""park, library, museum, beach, market, zoo, theater, school, stadium, lake,
        cinema, garden center, aquarium, airport, community hall"""),
    "shop": _list("""store, shop, market, supermarket, corner store, bookstore, gift shop, mall,
        department store, flea market"""),
    "relative": _list("""[younger|older|little|big] brother, [younger|older|little|big] sister,
        cousin, neighbor, best friend, classmate, uncle, aunt, roommate, teammate, grandmother,
        grandfather, coworker"""),
    "elder": _list("mother, father, aunt, uncle, teacher, coach, neighbor, grandmother"),
    "game": _list("soccer, basketball, hockey, baseball, volleyball, handball, rugby, lacrosse"),
    "subject": _list("math, science, history, art, music, geography, English, chemistry, biology"),
    "chore": _list("""mowing lawns, washing cars, walking dogs, babysitting, raking leaves,
        tutoring, delivering newspapers, painting fences, cleaning windows, shoveling snow"""),
    "vehicle": _list("bus, van, truck, train, car, motorcycle, ferry, camper"),
    "craft": _list("""birdhouses, quilts, clay pots, paper cranes, wooden spoons, picture frames,
        bookshelves, stools, rugs, wreaths, kites, leather bags"""),
    "event": _list("""birthday party, school fair, family reunion, wedding, picnic, bake sale,
        fundraiser, street festival, charity dinner, class trip, concert, barbecue"""),
    "color": _list("red, blue, green, yellow, purple, orange, white, black, pink, silver, brown"),
    "weather": _list("sunny, rainy, cold, windy, warm, cloudy, snowy, hot, foggy, chilly, bright"),
}
