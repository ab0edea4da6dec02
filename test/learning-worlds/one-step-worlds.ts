import { defineWorld, end, uniform, type World } from "./world.js";

const NAMES = [
  "amber", "basil", "cedar", "daisy", "elder", "fern", "ginger", "hazel", "iris", "juniper", "kale", "laurel", "maple",
  "nettle", "olive", "parsley", "quince", "rose", "sage", "thyme", "umber", "violet", "willow", "yarrow", "zinnia",
]; // prettier-ignore

const FLAGS = ["striped", "plain red", "checkered", "plain blue", "torn", "yellow with a cross"];
const ORDERS = ["port", "starboard", "anchor", "sail"];

/** One of four words, by a word of the observation. */
const flags = defineWorld<number>({
  id: "Flags-v0",
  tests: "4 actions, 6 observations",
  systemPrompt: "You steer a ship by the flags of the harbor. Answer port, starboard, anchor or sail.",
  maxEpisodeSteps: 1,
  start: uniform(FLAGS.map((_, i) => i)),
  describe: (flag) => `The harbor shows a flag that is ${FLAGS[flag]}. Your order?`,
  actions: () => ORDERS,
  step: (flag, order) => end(flag, ORDERS[(3 * flag + 1) % 4] === order ? 1 : 0),
});

const AILMENTS = ["headache", "cough", "fever", "sore foot", "itch", "burn", "cold", "weak stomach"];

/** One of 25 words, only one of which is rewarded. */
const herbs = defineWorld<number>({
  id: "Herbs-v0",
  tests: "25 actions, one of them right",
  systemPrompt: "You work in a pharmacy. Name the herb that helps.",
  maxEpisodeSteps: 1,
  start: uniform(AILMENTS.map((_, i) => i)),
  describe: (ailment) => `A customer has a ${AILMENTS[ailment]}. Which herb do you give?`,
  actions: () => NAMES,
  step: (ailment, herb) => end(ailment, NAMES[(7 * ailment + 3) % 25] === herb ? 1 : 0),
});

const DIAL = Array.from({ length: 50 }, (_, i) => String(i + 1));
const SONGS = { jazz: 12, news: 41, opera: 27 };

/** One of 50 numbers; near misses pay a little less. */
const radio = defineWorld<string>({
  id: "Radio-v0",
  tests: "50 numbers as actions, graded reward",
  systemPrompt: "Tune the radio. Answer with a number from 1 to 50.",
  maxEpisodeSteps: 1,
  start: uniform(Object.keys(SONGS)),
  describe: (song) => `Your guest would like to hear ${song}.`,
  actions: () => DIAL,
  step: (song, dial) => end(song, 1 - Math.abs(Number(dial) - SONGS[song as keyof typeof SONGS]) / 50),
});

const KEYS = ["red", "green", "blue", "black", "white", "golden"];

/** Choices that begin with the same words. */
const keys = defineWorld<number>({
  id: "Keys-v0",
  tests: "choices that share their first tokens",
  systemPrompt: "A corridor has six doors. Every key opens one of them, but not the one of its color.",
  maxEpisodeSteps: 1,
  start: uniform(KEYS.map((_, i) => i)),
  describe: (key) => `You hold the ${KEYS[key]} key.`,
  actions: () => KEYS.map((color) => `open the ${color} door`),
  step: (key, action) => end(key, action === `open the ${KEYS[(key + 2) % 6]} door` ? 1 : 0),
});

/** Two numbers in text, of which thousands of pairs exist. */
const scales = defineWorld<readonly [number, number]>({
  id: "Scales-v0",
  tests: "numbers in text",
  systemPrompt: "Two boxes are weighed. Say which one is heavier: left or right.",
  maxEpisodeSteps: 1,
  start: uniform(
    Array.from({ length: 90 * 90 }, (_, i) => [10 + (i % 90), 10 + Math.floor(i / 90)] as const).filter(
      ([left, right]) => left !== right,
    ),
  ),
  describe: ([left, right]) => `The left box weighs ${left} kg and the right box weighs ${right} kg.`,
  actions: () => ["left", "right"],
  step: (pair, action) => end(pair, (pair[0] > pair[1] ? "left" : "right") === action ? 1 : -1),
});

const SMALL_TALK = [
  "The weather here has been lovely all week.",
  "I have been a customer of yours for many years.",
  "My neighbor told me that you answer quickly.",
  "Please excuse my handwriting.",
  "Last summer my family visited your shop in the city.",
  "I hope that this letter finds you well.",
  "We bought a new sofa and a lamp in spring.",
  "My daughter likes the color of your logo.",
];
const CONCERNS = [
  { sentence: "The amount on my last bill is wrong.", office: "billing" },
  { sentence: "The parcel that I ordered has not arrived.", office: "shipping" },
  { sentence: "The machine makes a strange noise and stops.", office: "repairs" },
  { sentence: "I was charged twice in March.", office: "billing" },
  { sentence: "The box was left at the wrong house.", office: "shipping" },
  { sentence: "The screen of the device stays dark.", office: "repairs" },
];

/** A long text that never recurs, with one sentence that matters. */
const letters = defineWorld<number>({
  id: "Letters-v0",
  tests: "long text that does not recur",
  systemPrompt: "Sort the letters of a company by office: billing, shipping or repairs.",
  maxEpisodeSteps: 1,
  start: uniform(CONCERNS.map((_, i) => i)),
  describe: (concern, random) => {
    const talk = Array.from({ length: 5 }, () => SMALL_TALK[random.integers(0, SMALL_TALK.length)]);
    talk.splice(random.integers(0, 6), 0, CONCERNS[concern].sentence);
    return `Dear Sir or Madam, ${talk.join(" ")} Kind regards.`;
  },
  actions: () => ["billing", "shipping", "repairs"],
  step: (concern, office) => end(concern, CONCERNS[concern].office === office ? 1 : 0),
});

const TABLES = ["window", "garden", "bar"];
const COUNTS = [1, 2, 3, 4];

/** A tool call with two arguments, as JSON. */
const waiter = defineWorld<readonly [number, number]>({
  id: "Waiter-v0",
  tests: "JSON actions",
  systemPrompt: 'You seat guests. Call the tool with JSON such as {"table":"bar","chairs":2}.',
  maxEpisodeSteps: 1,
  format: {
    jsonSchema: {
      type: "object",
      properties: { table: { enum: TABLES }, chairs: { enum: COUNTS } },
      required: ["table", "chairs"],
      additionalProperties: false,
    },
  },
  start: uniform(TABLES.flatMap((_, table) => COUNTS.slice(0, 3).map((count) => [table, count] as const))),
  describe: ([table, count]) =>
    `${["Someone who reads", "A family with a dog", "A group in a hurry"][table]} comes in, ${count} ${count === 1 ? "person" : "people"} in all.`,
  actions: () => TABLES.flatMap((table) => COUNTS.map((chairs) => JSON.stringify({ table, chairs }))),
  step: (guests, action) => {
    const { table, chairs } = JSON.parse(action) as { table: string; chairs: number };
    return end(guests, (table === TABLES[guests[0]] ? 0.5 : 0) + (chairs === guests[1] ? 0.5 : 0));
  },
});

const ANIMALS = ["horse", "eagle", "trout", "wolf"];
const PLACES = ["stable", "cliff", "river", "forest"];

/** A word that no list of choices names. */
const animals = defineWorld<number>({
  id: "Animals-v0",
  tests: "free text",
  systemPrompt: "Say where an animal lives: stable, cliff, river or forest. Answer with this one word.",
  maxEpisodeSteps: 1,
  format: "text",
  start: uniform(ANIMALS.map((_, i) => i)),
  describe: (animal) => `Where does the ${ANIMALS[animal]} live?`,
  actions: () => PLACES,
  step: (animal, place) => end(animal, PLACES[animal] === place ? 1 : 0),
});

export const oneStepWorlds: readonly World[] = [flags, herbs, radio, keys, scales, letters, waiter, animals];
