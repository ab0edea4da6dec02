import { defineWorld, end, go, range, uniform, type World } from "./world.js";

const COLORS = ["red", "blue", "green"] as const;

/** A sequence that is shown color by color and then asked for. */
const simon = defineWorld<readonly [step: number, first: string, second: string]>({
  id: "Simon-v0",
  tests: "memory of two observations",
  systemPrompt: "Two lights flash one after the other. Then press the buttons in the same order.",
  maxEpisodeSteps: 10,
  historyTurns: 2,
  start: uniform(COLORS.flatMap((first) => COLORS.map((second) => [0, first, second] as const))),
  describe: ([step, first, second]) =>
    [
      `The ${first} light flashes.`,
      `The ${second} light flashes.`,
      "Press the first color.",
      "Press the second color.",
    ][step],
  actions: () => ["watch", ...COLORS],
  step: ([step, first, second], action) => {
    if (step < 2) return [go([step + 1, first, second], action === "watch" ? 0 : -0.1)];
    if (step === 2) return action === first ? [go([3, first, second], 0.5)] : end([3, first, second], 0);
    return end([step, first, second], action === second ? 0.5 : 0);
  },
});

/** Three numbers to compare; most of the 720 texts are seen once or twice. */
const queues = defineWorld<readonly [a: number, b: number, c: number]>({
  id: "Queues-v0",
  tests: "comparing numbers",
  systemPrompt: "You are in a shop with three tills. Join the shortest queue.",
  maxEpisodeSteps: 1,
  start: uniform(
    range(0, 10).flatMap((a) =>
      range(0, 10).flatMap((b) =>
        range(0, 10)
          .filter((c) => a !== b && b !== c && a !== c)
          .map((c) => [a, b, c] as const),
      ),
    ),
  ),
  describe: ([a, b, c]) => `Till A has ${a} people waiting, till B has ${b}, till C has ${c}.`,
  actions: () => ["till A", "till B", "till C"],
  step: (lengths, action) => end(lengths, -lengths["ABC".indexOf(action[5])]),
});

/** Orders before a demand that is not known. */
const bakery = defineWorld<readonly [day: number, stock: number]>({
  id: "Bakery-v0",
  tests: "orders under uncertain demand, rewards of hundreds",
  systemPrompt: "You run a bakery. Each morning you order sacks of flour for 60; each sack sold in the day brings 100.",
  maxEpisodeSteps: 8,
  start: uniform([0, 2, 5].map((stock) => [1, stock] as const)),
  describe: ([day, stock]) => `Morning ${day}. There are ${stock} sacks in store, and room for 6.`,
  actions: () => ["order 0", "order 1", "order 2", "order 3", "order 4"],
  step: ([day, stock], action) => {
    const ordered = Number(action.slice(6));
    const filled = Math.min(6, stock + ordered);
    return [1, 2, 3, 4].map((demand) => {
      const sold = Math.min(filled, demand);
      const reward = 100 * sold - 60 * ordered - 5 * (filled - sold);
      return { probability: 0.25, state: [day + 1, filled - sold] as const, reward, isEnd: day === 8 };
    });
  },
});

const WALLS = ["0-1", "4-5", "5-6", "2-6", "9-10", "8-12", "10-14", "7-11"];
const STEPS: Readonly<Record<string, number>> = { north: -4, south: 4, west: -1, east: 1 };
const waysOf = (cell: number) =>
  Object.entries(STEPS).flatMap(([name, step]) => {
    const next = cell + step;
    const isInside = next >= 0 && next < 16 && (Math.abs(step) === 4 || Math.floor(next / 4) === Math.floor(cell / 4));
    const wall = `${Math.min(cell, next)}-${Math.max(cell, next)}`;
    return isInside && !WALLS.includes(wall) ? [name] : [];
  });

/** A maze in which only the ways that are open can be chosen. */
const maze = defineWorld<number>({
  id: "Maze-v0",
  tests: "choices that change, a cost of each step",
  systemPrompt: "You are in a maze of small rooms. Find the way to room 15. Each step costs you strength.",
  maxEpisodeSteps: 25,
  start: uniform(range(0, 15)),
  describe: (room) => `You stand in room ${room}. Open ways: ${waysOf(room).join(", ")}.`,
  actions: waysOf,
  step: (room, way) => {
    const next = room + STEPS[way];
    return next === 15 ? end(next, 10) : [go(next, -1)];
  },
});

const NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];

/** A sum in words. */
const safe = defineWorld<readonly [base: number, more: number, wording: number]>({
  id: "Safe-v0",
  tests: "sums in several wordings",
  systemPrompt: "Open the safe: choose the digit that the note describes.",
  maxEpisodeSteps: 1,
  start: uniform(
    range(0, 8).flatMap((base) =>
      range(1, 3).flatMap((more) => range(0, 3).map((wording) => [base, more, wording] as const)),
    ),
  ),
  describe: ([base, more, wording]) =>
    [
      `The note says: ${more} more than ${base}.`,
      `The note says: take ${NAMES[base]} and add ${NAMES[more]}.`,
      `The note says: ${base} + ${more}.`,
    ][wording],
  actions: () => range(0, 10).map(String),
  step: ([base, more, wording], digit) => end([base, more, wording], Number(digit) === base + more ? 1 : 0),
});

/** Actions as JSON with two fields. */
const rover = defineWorld<readonly [x: number, y: number, battery: number]>({
  id: "Rover-v0",
  tests: "JSON actions with two fields, long episodes",
  systemPrompt: "You drive a rover on a field of 5 x 5. Bring it to the rock at (4, 4) before the battery is empty.",
  maxEpisodeSteps: 20,
  start: uniform([
    [0, 0, 12],
    [2, 0, 12],
    [0, 3, 12],
    [1, 1, 12],
  ] as const),
  describe: ([x, y, battery]) => `The rover is at (${x}, ${y}). Battery: ${battery}.`,
  actions: () => ["x", "y"].flatMap((axis) => [-1, 1, 2].map((distance) => JSON.stringify({ axis, distance }))),
  format: {
    jsonSchema: {
      type: "object",
      properties: { axis: { enum: ["x", "y"] }, distance: { enum: [-1, 1, 2] } },
      required: ["axis", "distance"],
      additionalProperties: false,
    },
  },
  step: ([x, y, battery], action) => {
    const { axis, distance } = JSON.parse(action) as { axis: string; distance: number };
    const [nextX, nextY] = axis === "x" ? [x + distance, y] : [x, y + distance];
    const left = battery - Math.abs(distance);
    if (nextX < 0 || nextX > 4 || nextY < 0 || nextY > 4) return end([x, y, left], -1);
    if (nextX === 4 && nextY === 4) return end([4, 4, left], 1 + left / 10);
    return left <= 0 ? end([nextX, nextY, 0], 0) : [go([nextX, nextY, left] as const)];
  },
});

/** A sign at the start of a corridor says which way leads out at its end. */
const signpost = defineWorld<readonly [step: number, side: number]>({
  id: "Signpost-v0",
  tests: "memory over six turns",
  systemPrompt: "You walk through a long tunnel. At its end, it forks.",
  maxEpisodeSteps: 12,
  historyTurns: 11,
  start: uniform([
    [0, 0],
    [0, 1],
  ] as const),
  describe: ([step, side]) =>
    step === 0
      ? `A sign reads: the way out is on the ${side === 0 ? "left" : "right"}.`
      : step < 6
        ? `The tunnel continues. You have walked ${step} steps.`
        : "The tunnel forks.",
  actions: () => ["forward", "left", "right"],
  step: ([step, side], action) => {
    if (step < 6)
      return [go([action === "forward" ? step + 1 : step, side] as const, action === "forward" ? 0 : -0.05)];
    if (action === "forward") return [go([step, side], -0.05)];
    return end([step, side], (action === "left") === (side === 0) ? 1 : -1);
  },
});

const DISHES: Readonly<Record<string, readonly string[]>> = {
  omelette: ["eggs", "butter"],
  salad: ["lettuce", "oil"],
  soup: ["carrots", "water"],
  pancakes: ["flour", "milk"],
  toast: ["bread", "cheese"],
};
const PANTRY = [
  ...Object.values(DISHES).flat(),
  ..."salt sugar pepper rice beans nuts honey onions garlic lemons apples pears fish beef ham peas corn tea cocoa yeast".split(
    " ",
  ),
];

/** Two right actions in a row, of thirty. */
const kitchen = defineWorld<readonly [dish: string, count: number]>({
  id: "Kitchen-v0",
  tests: "thirty actions, two in a row",
  systemPrompt: "You are a cook. Take the two ingredients of the dish, in the order of the recipe.",
  maxEpisodeSteps: 6,
  start: uniform(Object.keys(DISHES).map((dish) => [dish, 0] as const)),
  describe: ([dish, count]) =>
    `A guest orders ${dish}.${count === 1 ? ` You have taken ${DISHES[dish][0]}.` : " You have taken nothing."}`,
  actions: () => PANTRY,
  step: ([dish, count], item) => {
    if (item !== DISHES[dish][count]) return [go([dish, count], -0.1)];
    return count === 1 ? end([dish, 2], 1) : [go([dish, 1], 0.2)];
  },
});

/** A bid against another whose bid is not known. */
const auction = defineWorld<number>({
  id: "Auction-v0",
  tests: "numbers as actions, noisy rewards",
  systemPrompt: "Sealed bids: the higher bid wins and pays what it bid. The other bidder bids anything from 0 to 10.",
  maxEpisodeSteps: 1,
  start: uniform([4, 6, 8, 10, 12]),
  describe: (value) => `The vase is worth ${value} to you. What do you bid?`,
  actions: () => range(0, 13).map((bid) => `bid ${bid}`),
  step: (value, action) => {
    const bid = Number(action.slice(4));
    const probability = Math.min(1, bid / 11);
    return [
      { probability, state: value, reward: value - bid, isEnd: true },
      { probability: 1 - probability, state: value, reward: 0, isEnd: true },
    ];
  },
});

const BANKS = ["left", "right"] as const;
type Crossing = readonly [man: number, wolf: number, goat: number, cabbage: number];
const THINGS = ["wolf", "goat", "cabbage"] as const;

/** A puzzle of seven right crossings; eating ends it. */
const ferry = defineWorld<Crossing>({
  id: "Ferry-v0",
  tests: "a puzzle of seven steps with one end of success",
  systemPrompt:
    "A man must bring a wolf, a goat and a cabbage across a river, one at a time. Without him, the wolf eats the goat, and the goat the cabbage.",
  maxEpisodeSteps: 20,
  start: [{ probability: 1, state: [0, 0, 0, 0] }],
  describe: ([man, ...things]) =>
    `The man is on the ${BANKS[man]} bank. ` +
    THINGS.map((name, i) => `The ${name} is on the ${BANKS[things[i]]} bank.`).join(" "),
  actions: () => ["cross alone", ...THINGS.map((name) => `take the ${name}`)],
  step: (state, action) => {
    const next = [...state] as [number, number, number, number];
    const thing = THINGS.findIndex((name) => action.endsWith(name));
    if (thing >= 0 && state[thing + 1] !== state[0]) return [go(state, -0.05)];
    next[0] = 1 - next[0];
    if (thing >= 0) next[thing + 1] = next[0];
    const [man, wolf, goat, cabbage] = next;
    if (goat !== man && (wolf === goat || cabbage === goat)) return end(next, -1);
    return next.every((bank) => bank === 1) ? end(next, 2) : [go(next, -0.02)];
  },
});

/** Ten worlds that no default was chosen on. */
export const unseenWorlds: readonly World[] = [
  simon,
  queues,
  bakery,
  maze,
  safe,
  rover,
  signpost,
  kitchen,
  auction,
  ferry,
];
