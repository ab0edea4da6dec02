import { join } from "node:path";
import type { Bench, BenchCase } from "./framework.js";

/**
 * `steps` steps of an environment as `make` gives it, wrappers and all, with a reset after every
 * end. The actions are drawn beforehand, from one seed. Count: `steps`. Peer: peers/envs.py.
 */
export type EnvsWork = { work: "steps"; id: string; steps: number };

const IDS = [
  "Blackjack-v1",
  "FrozenLake-v1",
  "FrozenLake8x8-v1",
  "CliffWalking-v1",
  "CliffWalkingSlippery-v1",
  "Taxi-v4",
  "CartPole-v1",
  "MountainCar-v0",
  "MountainCarContinuous-v0",
  "Acrobot-v1",
  "Pendulum-v1",
];

export const bench: Bench = {
  name: "envs",
  description: "Steps a second of environments with random actions, resets included; peer: Python's Gymnasium",
  ours: { module: join("ours", "envs.js") },
  peers: { gymnasium: { environment: ".venv", script: "envs.py" } },
  cases: IDS.map((id): BenchCase => {
    const work: EnvsWork = { work: "steps", id, steps: 50_000 };
    return { name: id, parameters: work, metric: { kind: "rate", unit: "steps/s" } };
  }),
};
