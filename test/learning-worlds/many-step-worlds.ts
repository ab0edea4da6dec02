import { defineWorld, end, go, uniform, type World } from "./world.js";

/** A reward at the end of a corridor only. */
const corridor = defineWorld<number>({
  id: "Corridor-v0",
  tests: "sparse reward",
  systemPrompt: "You are in a dark corridor with an exit at one end. Answer left or right.",
  maxEpisodeSteps: 24,
  start: [{ probability: 1, state: 2 }],
  describe: (cell) => `You stand at pillar ${cell} of 8.`,
  actions: () => ["left", "right"],
  step: (cell, action) => {
    const next = action === "right" ? cell + 1 : Math.max(1, cell - 1);
    return next === 8 ? end(next, 1) : [go(next)];
  },
});

/** A small reward at once against a large one five steps later. */
const bait = defineWorld<number>({
  id: "Bait-v0",
  tests: "deceptive reward",
  systemPrompt:
    "You follow a trail through the forest. Berries end your trip; the lake is worth more. Answer eat or walk.",
  maxEpisodeSteps: 10,
  start: [{ probability: 1, state: 0 }],
  describe: (distance) => `You have walked ${distance} miles. There are berries near the trail.`,
  actions: () => ["eat", "walk"],
  step: (distance, action) => (action === "eat" ? end(distance, 0.2) : distance === 4 ? end(5, 1) : [go(distance + 1)]),
});

const HEAT = { heat: 2, wait: 0, vent: -2 };

/** Control of a noisy quantity. */
const oven = defineWorld<number>({
  id: "Oven-v0",
  tests: "stochastic control",
  systemPrompt: "Keep the oven at 200 degrees. Answer heat, wait or vent.",
  maxEpisodeSteps: 20,
  start: uniform([-6, -4, -2, 2, 4, 6]),
  describe: (offset) => `The oven has ${200 + 10 * offset} degrees.`,
  actions: () => Object.keys(HEAT),
  step: (offset, action) => {
    const target = offset + HEAT[action as keyof typeof HEAT];
    return (
      [
        [-1, 0.35],
        [0, 0.5],
        [1, 0.15],
      ] as const
    ).map(([drift, probability]) => {
      const next = Math.max(-7, Math.min(7, target + drift));
      return go(next, Math.abs(next) <= 1 ? 0.05 : 0, probability);
    });
  },
});

const YARD = ["...#", ".#..", "...#", "#..."];
const MOVES = { north: [-1, 0], south: [1, 0], east: [0, 1], west: [0, -1] } as const;

/** A yard with walls in which every step costs. */
const yard = defineWorld<readonly [number, number]>({
  id: "Yard-v0",
  tests: "negative rewards only",
  systemPrompt: "You look for the gate of a walled yard. Each step costs a point. Answer north, south, east or west.",
  maxEpisodeSteps: 30,
  start: uniform([
    [0, 0],
    [1, 2],
    [2, 0],
  ] as const),
  describe: ([row, column]) => `You are in row ${row + 1}, column ${column + 1}.`,
  actions: () => Object.keys(MOVES),
  step: ([row, column], action) => {
    const [down, right] = MOVES[action as keyof typeof MOVES];
    const isFree = YARD[row + down]?.[column + right] === ".";
    const next = isFree ? ([row + down, column + right] as const) : ([row, column] as const);
    return next[0] === 3 && next[1] === 3 ? end(next, -1) : [go(next, -1)];
  },
});

/** Push your luck: a one loses what was rolled. */
const dice = defineWorld<number>({
  id: "Dice-v0",
  tests: "stochastic, when to stop",
  systemPrompt: "Roll a die as often as you like. A one loses all points of the turn. Answer roll or stop.",
  maxEpisodeSteps: 20,
  start: [{ probability: 1, state: 0 }],
  describe: (points) => `You have ${points} points so far.`,
  actions: () => ["roll", "stop"],
  step: (points, action) =>
    action === "stop"
      ? end(points, points / 20)
      : [1, 2, 3, 4, 5, 6].map((face) => ({
          probability: 1 / 6,
          state: Math.min(40, points + face),
          reward: 0,
          isEnd: face === 1,
        })),
});

/** Rewards of thousands. */
const market = defineWorld<readonly [number, number]>({
  id: "Market-v0",
  tests: "rewards of 1,000",
  systemPrompt: "You sell a painting within five days. Each day brings one offer. Answer accept or refuse.",
  maxEpisodeSteps: 5,
  start: uniform([1, 2, 3, 4, 5, 6].map((price) => [1, price] as const)),
  describe: ([day, price]) => `Day ${day} of 5. A dealer offers ${price * 1000} dollars.`,
  actions: () => ["accept", "refuse"],
  step: ([day, price], action) => {
    if (action === "accept") return end([day, price], price * 1000);
    return day === 5 ? end([day, price], 0) : [1, 2, 3, 4, 5, 6].map((next) => go([day + 1, next] as const, 0, 1 / 6));
  },
});

const SOIL = ["cracked", "dry", "moist", "wet", "flooded"];

/** Rewards of thousandths. */
const garden = defineWorld<number>({
  id: "Garden-v0",
  tests: "rewards of 0.001",
  systemPrompt: "Keep the soil of a garden moist. Answer water, rest or drain.",
  maxEpisodeSteps: 12,
  start: uniform([0, 1, 3, 4]),
  describe: (soil) => `The soil is ${SOIL[soil]} today.`,
  actions: () => ["water", "rest", "drain"],
  step: (soil, action) => {
    const change = action === "water" ? 1 : action === "drain" ? -1 : 0;
    return (
      [
        [-1, 0.3],
        [0, 0.5],
        [1, 0.2],
      ] as const
    ).map(([weather, probability]) => {
      const next = Math.max(0, Math.min(4, soil + change + weather));
      return go(next, next === 2 ? 0.001 : 0, probability);
    });
  },
});

const DISHES = ["soup", "bread", "cheese", "fish", "salad", "cake"];
const GUESTS = ["sailor", "child", "farmer", "poet"];

/** Three of six dishes are on offer each time. */
const tavern = defineWorld<{ readonly guest: number; readonly menu: readonly number[]; readonly served: number }>({
  id: "Tavern-v0",
  tests: "choices that change",
  systemPrompt: "You serve guests of a tavern, each of whom prefers some dishes. Name a dish of today's menu.",
  maxEpisodeSteps: 3,
  start: uniform(listMenus().map(({ guest, menu }) => ({ guest, menu, served: 0 }))),
  describe: ({ guest, menu }) =>
    `A ${GUESTS[guest]} sits down. On the menu: ${menu.map((dish) => DISHES[dish]).join(", ")}.`,
  actions: ({ menu }) => menu.map((dish) => DISHES[dish]),
  step: ({ guest, menu, served }, action) => {
    const reward = likes(guest, DISHES.indexOf(action)) === Math.max(...menu.map((dish) => likes(guest, dish))) ? 1 : 0;
    if (served === 2) return end({ guest, menu, served }, reward);
    const next = listMenus();
    return next.map((each) => go({ ...each, served: served + 1 }, reward, 1 / next.length));
  },
});

const likes = (guest: number, dish: number): number => (5 * dish + 7 * guest + dish * guest) % 11;

function listMenus(): { guest: number; menu: readonly number[] }[] {
  const menus = [
    [0, 1, 2],
    [3, 4, 5],
    [0, 2, 4],
    [1, 3, 5],
  ];
  return GUESTS.flatMap((_, guest) => menus.map((menu) => ({ guest, menu })));
}

const LIGHTS = ["red", "yellow", "green"];
const PEDALS = ["brake", "coast", "drive"];

/** Many steps, each of which counts a little. */
const lights = defineWorld<readonly [number, number]>({
  id: "Lights-v0",
  tests: "episodes of 60 steps",
  systemPrompt: "You drive through a city. Answer brake, coast or drive at every light.",
  maxEpisodeSteps: 60,
  start: uniform([0, 1, 2].map((light) => [light, 1] as const)),
  describe: ([light, crossing]) => `Crossing ${crossing}: the light is ${LIGHTS[light]}.`,
  actions: () => PEDALS,
  step: ([light, crossing], action) => {
    const reward = PEDALS[light] === action ? 1 / 60 : -1 / 60;
    return [0, 1, 2].map((next) => go([next, (crossing % 60) + 1] as const, reward, 1 / 3));
  },
});

const FIELDS = ["sandy", "loamy", "stony"];
const CROPS = ["wheat", "rye", "oats"];

/** The first action decides, eight actions without effect follow, and then the reward comes. */
const harvest = defineWorld<readonly [number, number, number]>({
  id: "Harvest-v0",
  tests: "delayed reward",
  systemPrompt:
    "You plant a field once, then tend it until the harvest. Answer wheat, rye or oats, later weed or rest.",
  maxEpisodeSteps: 9,
  start: uniform(FIELDS.map((_, field) => [0, field, 0] as const)),
  describe: ([day, field, crop]) =>
    day === 0
      ? `Your field is ${FIELDS[field]}. What do you plant?`
      : `Day ${day} of 8. Your ${FIELDS[field]} field has ${CROPS[crop]}.`,
  actions: ([day]) => (day === 0 ? CROPS : ["weed", "rest"]),
  step: ([day, field, crop], action) => {
    if (day === 0) return [go([1, field, CROPS.indexOf(action)] as const)];
    return day === 8
      ? end([day, field, crop], (field + 1) % 3 === crop ? 1 : 0)
      : [go([day + 1, field, crop] as const)];
  },
});

export const manyStepWorlds: readonly World[] = [
  corridor,
  bait,
  oven,
  yard,
  dice,
  market,
  garden,
  tavern,
  lights,
  harvest,
];
