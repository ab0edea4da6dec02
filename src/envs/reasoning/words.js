/** Common English words of 3 to 10 letters, in alphabetical order. */
export const WORDS = `
across afternoon alphabet animal answer apple archive arrow artist autumn balance balloon banana basket beach beautiful
bench between bicycle blanket blossom border bottle branch bread breakfast bridge bright brother bucket builder butter
button cabin camera candle canvas captain carpet castle caterer center chair chapter cheese cherry chimney circle citizen
city clay clever climate cloud coast coffee collect color compass concert copper corner cottage country cousin cradle
crystal curtain dance daughter decide desert dinner distance doctor dolphin double dragon drawer dream driver early earth
eastern education elbow electric empty engine evening example family farmer father feather festival fiddle field finger
flavor flower forest forgotten fountain friend furniture garden gentle giant glacier glass golden grape gravel guitar
hammer handle harbor harvest hazel helmet history hollow honey horizon hospital hotel hunter iceberg important inside
island jacket journey jungle kettle kingdom kitchen ladder language lantern leather lemon letter library lighthouse lizard
lovely machine magnet maple market meadow melody message midnight minute mirror monday monkey morning mountain museum music
narrow nature needle neighbor never noisy north notebook number ocean office olive orange orchard orchestra ordinary
outside oxygen paint palace paper parcel parrot pattern pebble pencil pepper picture pilot planet plastic pocket poem
pottery powder president promise puzzle quarter question quiet rabbit railway rainbow reader remember ribbon river rocket
rough saddle sailor salt sandwich school science scissors season secret shadow sheep shelter shoulder silver simple sister
sketch sleep slow smooth snow soldier south spider spoon spring square stable station stone story straw street student
sugar summer sunflower surface swallow table teacher telephone temple theater thirty thread thunder ticket tiger timber
together tomato tower travel treasure triangle tunnel turtle twelve umbrella uncle valley velvet village violin visitor
voice volcano wagon walnut water weather weekend western whisper window winter wisdom wonderful wooden writer yellow
zebra advantage adventure astronomer background basketball blackboard blueberry breathless broadcast butterfly
calculator campfire carpenter chocolate classroom collection conclusion confidence connection copyright crossroads
dictionary direction discussion earthquake everything expression firewood fisherman friendship generation government
happiness hemisphere hitchhike illustrate impossible incredible instrument jellyfish keyboard knowledge
landscape limestone literature marketable motorcycle multiplied nightfall northern notice paperback particular
passenger peppermint photograph playground population possession professor proportion rectangle reflection restaurant
riverside satellite scientific sculpture settlement shoemaker signature snowflake something strawberry structure
submarine technology television tournament translator understand universal vegetable waterfall wilderness workplace
yesterday act age air arm ask bag bed big box bus cap car cow cup day dog ear egg end far fig fly fox gas hat hen ice ink jar
key leg lid map net nut oak oil owl pan pen pig red row sea sky sun tea toe top van wax web yes zip
`
    .trim()
    .split(/\s+/)
    .sort();
/** First names of the people in puzzles. */
export const NAMES = `
Ada Ben Clara David Emma Felix Grace Henry Ida Jonas Kate Leo Mia Noah Olga Paul Quinn Rosa Sam Tess Uma Victor Wendy
Xaver Yara Zoe
`
    .trim()
    .split(/\s+/);
/** Animals with their number of legs. */
export const ANIMALS = [
    ["ant", 6],
    ["bee", 6],
    ["beetle", 6],
    ["bird", 2],
    ["butterfly", 6],
    ["cat", 4],
    ["chicken", 2],
    ["cow", 4],
    ["crab", 10],
    ["dog", 4],
    ["duck", 2],
    ["elephant", 4],
    ["frog", 4],
    ["goat", 4],
    ["horse", 4],
    ["human", 2],
    ["lion", 4],
    ["lobster", 10],
    ["scorpion", 8],
    ["shrimp", 10],
    ["snail", 0],
    ["snake", 0],
    ["spider", 8],
    ["starfish", 5],
    ["tiger", 4],
    ["wasp", 6],
    ["worm", 0],
];
