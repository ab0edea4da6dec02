import { defineWorld, end, go, uniform, type World } from "./world.js";

const STREETS = ["Mill Lane", "Oak Street", "Bridge Road"];

/** The first observation names what the last action needs. */
const parcel = defineWorld<readonly [number, number]>({
  id: "Parcel-v0",
  tests: "memory",
  historyTurns: 3,
  systemPrompt: "You deliver a parcel. Answer drive until you arrive, then name the street on the parcel.",
  maxEpisodeSteps: 4,
  start: uniform(STREETS.map((_, street) => [0, street] as const)),
  describe: ([stage, street]) =>
    stage === 0
      ? `The parcel is for ${STREETS[street]}.`
      : stage < 3
        ? "You drive through the town."
        : "You have arrived. Which street was it?",
  actions: ([stage]) => (stage < 3 ? ["drive"] : STREETS),
  step: ([stage, street], action) =>
    stage < 3 ? [go([stage + 1, street] as const)] : end([stage, street], STREETS[street] === action ? 1 : 0),
});

/** Each test is right four times of five, and costs a little. */
const clinic = defineWorld<readonly [number, number]>({
  id: "Clinic-v0",
  tests: "partial observation",
  historyTurns: 5,
  systemPrompt: "A patient has the flu or a cold. Tests are right four times of five. Answer test, flu or cold.",
  maxEpisodeSteps: 6,
  start: uniform([0, 1].map((illness) => [illness, 0] as const)),
  describe: ([, result]) => ["There is no test result yet.", "This test says flu.", "This test says cold."][result],
  actions: () => ["test", "flu", "cold"],
  step: ([illness, result], action) => {
    if (action !== "test") return end([illness, result], action === ["flu", "cold"][illness] ? 1 : -1);
    return [0, 1].map((shown) => go([illness, shown + 1] as const, -0.05, shown === illness ? 0.8 : 0.2));
  },
});

export const hiddenWorlds: readonly World[] = [parcel, clinic];
