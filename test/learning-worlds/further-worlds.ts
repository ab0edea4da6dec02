import { defineWorld, end, go, range, uniform, type World } from "./world.js";

const pairs = <A, B>(first: readonly A[], second: readonly B[]) =>
  first.flatMap((a) => second.map((b) => [a, b] as const));

const FLOORS = range(0, 7);

/** A goal that the observation names. */
const elevator = defineWorld<readonly [floor: number, wanted: number]>({
  id: "Elevator-v0",
  tests: "a goal in the observation",
  systemPrompt: "You operate an elevator. Take the passenger to the wanted floor and open the door there.",
  maxEpisodeSteps: 20,
  start: uniform(pairs(FLOORS, FLOORS).filter(([floor, wanted]) => floor !== wanted)),
  describe: ([floor, wanted]) => `The elevator is at floor ${floor}. The passenger wants floor ${wanted}.`,
  actions: () => ["up", "down", "open door"],
  step: ([floor, wanted], action) => {
    if (action === "open door") return end([floor, wanted], floor === wanted ? 1 : -1);
    return [go([Math.max(0, Math.min(6, floor + (action === "up" ? 1 : -1))), wanted], -0.02)];
  },
});

/** An amount to be paid exactly, with few coins. */
const coins = defineWorld<number>({
  id: "Coins-v0",
  tests: "amounts",
  systemPrompt: "Pay the exact price with coins. Each coin costs a little effort.",
  maxEpisodeSteps: 15,
  start: uniform(range(1, 13).map((count) => 5 * count)),
  describe: (owed) => `You still owe ${owed} cents.`,
  actions: () => ["5 cents", "10 cents", "25 cents"],
  step: (owed, action) => {
    const coin = Number.parseInt(action, 10);
    return coin > owed ? end(0, -5) : coin === owed ? end(0, 9) : [go(owed - coin, -1)];
  },
});

/** Queues whose costs are noisy. */
const traffic = defineWorld<readonly [north: number, east: number, green: number]>({
  id: "Traffic-v0",
  tests: "queues with negative rewards",
  systemPrompt: "You control a traffic light. Fewer waiting cars are better.",
  maxEpisodeSteps: 15,
  start: uniform([
    [2, 1, 0],
    [1, 3, 1],
    [0, 4, 0],
    [4, 0, 1],
  ] as const),
  describe: ([north, east, green]) =>
    `Cars waiting from the north: ${north}, from the east: ${east}. The light is green for the ${green === 1 ? "east" : "north"}.`,
  actions: () => ["keep", "switch"],
  step: ([north, east, green], action) => {
    const next = action === "switch" ? 1 - green : green;
    const served = action === "switch" ? 1 : 2;
    return pairs([0, 1], [0, 1]).map(([fromNorth, fromEast]) => {
      const norths = Math.min(5, Math.max(0, north - (next === 0 ? served : 0)) + fromNorth);
      const easts = Math.min(5, Math.max(0, east - (next === 1 ? served : 0)) + fromEast);
      const probability = (fromNorth === 1 ? 0.4 : 0.6) * 0.5;
      return go([norths, easts, next] as const, -(norths + easts) / 10, probability);
    });
  },
});

/** A reward after two stages, which random play reaches once in 160 episodes. */
const door = defineWorld<readonly [room: number, hasKey: number]>({
  id: "Door-v0",
  tests: "sparse reward after two stages",
  systemPrompt: "You are in a hallway of rooms. Find the key, then leave through the door at the other end.",
  maxEpisodeSteps: 30,
  start: [{ probability: 1, state: [3, 0] }],
  describe: ([room, hasKey]) =>
    `You are in room ${room} of the hallway. ${hasKey === 1 ? "You hold the key." : "You have no key."}` +
    `${room === 0 && hasKey === 0 ? " A key lies here." : ""}${room === 6 ? " There is a locked door." : ""}`,
  actions: () => ["west", "east", "take key", "unlock door"],
  step: ([room, hasKey], action) => {
    if (action === "take key") return [go([room, room === 0 ? 1 : hasKey])];
    if (action === "unlock door") return room === 6 && hasKey === 1 ? end([room, hasKey], 1) : [go([room, hasKey])];
    return [go([Math.max(0, Math.min(6, room + (action === "east" ? 1 : -1))), hasKey])];
  },
});

const BAITS = ["worm", "bread", "corn", "shrimp"];
const CATCHES = { north: [0.8, 0.2, 0.3, 0.1], south: [0.1, 0.7, 0.2, 0.3], island: [0.3, 0.2, 0.1, 0.9] };

/** A bandit whose arms pay by chance. */
const fishing = defineWorld<keyof typeof CATCHES>({
  id: "Fishing-v0",
  tests: "noisy rewards by context",
  systemPrompt: "Choose a bait for the fishing spot. You are paid for each fish.",
  maxEpisodeSteps: 1,
  start: uniform(["north", "south", "island"] as const),
  describe: (shore) => `Today you fish at the ${shore} shore.`,
  actions: () => BAITS,
  step: (shore, bait) => {
    const probability = CATCHES[shore][BAITS.indexOf(bait)];
    return [
      { probability, state: shore, reward: 1, isEnd: true },
      { probability: 1 - probability, state: shore, reward: 0, isEnd: true },
    ];
  },
});

const BEATEN_BY: Readonly<Record<string, string>> = { rock: "paper", paper: "scissors", scissors: "rock" };
const SIGNS = Object.keys(BEATEN_BY);

/** A player who mostly plays what would have won against the last sign. */
const roshambo = defineWorld<string>({
  id: "Roshambo-v0",
  tests: "an opponent with a habit",
  systemPrompt: "Play rock, paper, scissors against a player with a habit.",
  maxEpisodeSteps: 10,
  start: uniform(SIGNS),
  describe: (last) => `Your opponent's last sign was ${last}. What do you play?`,
  actions: () => SIGNS,
  step: (last, sign) =>
    SIGNS.map((other) => {
      const reward = sign === BEATEN_BY[other] ? 1 : BEATEN_BY[sign] === other ? -1 : 0;
      return go(other, reward, other === BEATEN_BY[last] ? 0.8 : 0.1);
    }),
});

const DAYS = 20;

/** A price that returns to its mean; gains are a tenth of what is paid and received. */
const grain = defineWorld<readonly [day: number, price: number, owned: number]>({
  id: "Grain-v0",
  tests: "small gains in large rewards",
  systemPrompt: "You trade one sack of grain. Prices return to their mean of 100.",
  maxEpisodeSteps: DAYS,
  start: uniform([90, 100, 110].map((price) => [1, price, 0] as const)),
  describe: ([day, price, owned]) =>
    `Day ${day} of ${DAYS}. The price is ${price}. You own ${owned === 1 ? "a sack" : "nothing"}.`,
  actions: () => ["buy", "sell", "hold"],
  step: ([day, price, owned], action) => {
    const reward = action === "buy" && owned === 0 ? -price : action === "sell" && owned === 1 ? price : 0;
    const next = action === "buy" ? 1 : action === "sell" ? 0 : owned;
    const rise = price < 100 ? 0.65 : price > 100 ? 0.35 : 0.5;
    return [
      go([Math.min(DAYS, day + 1), Math.min(140, price + 10), next] as const, reward, rise),
      go([Math.min(DAYS, day + 1), Math.max(60, price - 10), next] as const, reward, 1 - rise),
    ];
  },
});

const STEPS = ["grind beans", "heat water", "pour water", "stir", "serve"];

/** A sequence that the first mistake ends. */
const coffee = defineWorld<number>({
  id: "Coffee-v0",
  tests: "a sequence that a mistake ends",
  systemPrompt: "Make a coffee step by step in the right order.",
  maxEpisodeSteps: 8,
  start: [{ probability: 1, state: 0 }],
  describe: (done) => (done === 0 ? "The counter is empty." : `Last done: ${STEPS[done - 1]}.`),
  actions: () => ["stir", "serve", "heat water", "grind beans", "pour water", "wash cup"],
  step: (done, action) => (action !== STEPS[done] ? end(done, 0) : done === 4 ? end(5, 1) : [go(done + 1, 0.1)]),
});

const SUBJECTS = ["invoice", "holiday photos", "you won a prize", "password reset", "meeting"];
const SPAM: Readonly<Record<string, readonly string[]>> = {
  bank: ["password reset", "you won a prize"],
  friend: ["invoice", "you won a prize"],
  shop: ["holiday photos"],
  unknown: ["invoice", "password reset", "you won a prize", "holiday photos"],
};

/** A label that depends on two words together. */
const mail = defineWorld<readonly [sender: string, subject: string]>({
  id: "Mail-v0",
  tests: "two words together",
  systemPrompt: "Sort mail. Decide whether a message goes to the inbox or to spam.",
  maxEpisodeSteps: 1,
  start: uniform(pairs(Object.keys(SPAM), SUBJECTS)),
  describe: ([sender, subject]) => `From: ${sender}. Subject: ${subject}.`,
  actions: () => ["inbox", "spam"],
  step: ([sender, subject], action) =>
    end([sender, subject], (SPAM[sender].includes(subject) ? "spam" : "inbox") === action ? 1 : 0),
});

/** A search in which all earlier answers count. */
const hotCold = defineWorld<readonly [hidden: number, answer: string]>({
  id: "HotCold-v0",
  tests: "memory of all answers",
  historyTurns: 5,
  systemPrompt: "Find the hidden number from 1 to 7 in few guesses.",
  maxEpisodeSteps: 6,
  start: uniform(range(1, 8).map((hidden) => [hidden, ""] as const)),
  describe: ([, answer]) => (answer === "" ? "Guess a number." : `The hidden number is ${answer}.`),
  actions: () => range(1, 8).map(String),
  step: ([hidden], action) => {
    const guess = Number(action);
    if (guess === hidden) return end([hidden, ""], 1);
    return [go([hidden, guess < hidden ? `higher than ${guess}` : `lower than ${guess}`] as const, -0.1)];
  },
});

/** Worlds that were written after the defaults were chosen. */
export const furtherWorlds: readonly World[] = [
  elevator,
  coins,
  traffic,
  door,
  fishing,
  roshambo,
  grain,
  coffee,
  mail,
  hotCold,
];
