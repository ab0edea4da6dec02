/** Common English words of 3 to 10 letters, in alphabetical order. */
export const WORDS: readonly string[] = `
across act advantage adventure afternoon age air alphabet animal answer apex apple archive arm army arrow artist ask
astronomer autumn away baby back background bag balance ball balloon banana bank barn basket basketball beach bear
beautiful bed bell bench between bicycle big bird blackboard blanket blossom blue blueberry boat body bone book border
bottle bowl box branch bread breakfast breathless bridge bright broadcast brother bucket builder bus butter butterfly
button cabin cake calculator calm camera campfire candle canvas cap captain car card carpenter carpet castle caterer
cave center chair chapter cheese cherry chimney chocolate circle citizen city classroom clay clever climate cloud coast
coat coffee cold collect collection color compass concert conclusion confidence connection cook copper copyright corn
corner cottage country cousin cow cradle crossroads crystal cup curtain dance daughter day decide deep desert desk
dictionary dinner direction discussion distance doctor dog dolphin door double dragon drawer dream driver dust ear early
earth earthquake east eastern education egg elbow electric empty end engine evening everything example expression face
family far farm farmer fast father feather festival fiddle field fig finger fire firewood fish fisherman flag flavor
flower fly food foot forest forgotten fountain fox friend friendship furniture garden gas gate generation gentle giant
gift glacier glass goat gold golden good government grape gravel guitar hammer hand handle happiness harbor harvest hat
hazel helmet hemisphere hen hill history hitchhike hollow home honey horizon hospital hotel hour hunter ice iceberg idea
illustrate important impossible incredible ink inside instrument iron island jacket jar jellyfish journey jungle kettle
key keyboard king kingdom kitchen knowledge ladder lake lamp landscape language lantern leaf leather leg lemon letter
library lid lighthouse limestone line lion literature lizard lovely machine magnet map maple market marketable meadow
melody message midnight minute mirror monday monkey moon morning motorcycle mountain multiplied museum music narrow
nature needle neighbor nest net never nightfall noisy north northern notebook notice number nut oak ocean office oil
olive open orange orchard orchestra ordinary outside owl oxygen paint palace pan paper paperback parcel park parrot
particular passenger path pattern pebble pen pencil pepper peppermint photograph picture pig pilot planet plastic
playground pocket poem population possession pottery powder president professor promise proportion puzzle quarter
question quiet rabbit railway rain rainbow reader rectangle red reflection remember restaurant ribbon ring river
riverside road rocket roof room rope rough row saddle sailor salt sand sandwich satellite school science scientific
scissors sculpture sea season secret settlement shadow sheep shelter ship shoe shoemaker shoulder signature silver
simple sister sketch sky sleep slow smooth snow snowflake soldier something song south spider spoon spring square stable
star station stone story straw strawberry street structure student submarine sugar summer sun sunflower surface swallow
table tea teacher technology telephone television temple theater thirty thread thunder ticket tiger timber toe together
tomato top tournament tower translator travel treasure tree triangle tunnel turtle twelve umbrella uncle understand
universal valley van vegetable velvet village violin visitor voice volcano wagon wall walnut water waterfall wax weather
web weekend western whisper wilderness wind window winter wisdom wolf wonderful wood wooden workplace writer year yellow
yes yesterday zebra zip
`
  .trim()
  .split(/\s+/)
  .sort();

/** First names of the people in puzzles. */
export const NAMES: readonly string[] = `
Ada Ben Clara David Emma Felix Grace Henry Ida Jonas Kate Leo Mia Noah Olga Paul Quinn Rosa Sam Tess Uma Victor Wendy
Xaver Yara Zoe
`
  .trim()
  .split(/\s+/);

/** Animals with their number of legs. */
export const ANIMALS: readonly (readonly [name: string, legs: number])[] = [
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
