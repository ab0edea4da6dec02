import { AcrobotEnv } from "./classic-control/acrobot.js";
import { CartPoleEnv } from "./classic-control/cart-pole.js";
import { ContinuousMountainCarEnv } from "./classic-control/continuous-mountain-car.js";
import { MountainCarEnv } from "./classic-control/mountain-car.js";
import { PendulumEnv } from "./classic-control/pendulum.js";
import type { EnvOptions } from "./env.js";
import type { Registration } from "./registry/env-registry.js";
import { BanditEnv } from "./tasks/bandit.js";
import { BullsAndCowsEnv } from "./tasks/bulls-and-cows.js";
import { CalculatorEnv } from "./tasks/calculator.js";
import { GuessNumberEnv } from "./tasks/guess-number.js";
import { SokobanEnv } from "./tasks/sokoban.js";
import { TwentyFortyEightEnv } from "./tasks/twenty-forty-eight.js";
import { WebShopEnv } from "./tasks/web-shop.js";
import { WordleEnv } from "./tasks/wordle.js";
import { TextWorldEnv } from "../text-world/text-world-env.js";
import { BlackjackEnv } from "./toy-text/blackjack.js";
import { CliffWalkingEnv } from "./toy-text/cliff-walking.js";
import { FrozenLakeEnv } from "./toy-text/frozen-lake.js";
import { TaxiEnv } from "./toy-text/taxi.js";

const createFrozenLake = (options: EnvOptions) => new FrozenLakeEnv(options);
const createCliffWalking = (options: EnvOptions) => new CliffWalkingEnv(options);
const createCartPole = (options: EnvOptions) => new CartPoleEnv(options);

/** The environments that `make` knows from the start. Step limits and thresholds are Gymnasium's. */
export const BUILT_IN_ENVS: readonly Registration[] = [
  { id: "Blackjack-v1", entryPoint: (options) => new BlackjackEnv(options), options: { sab: true, natural: false } },
  {
    id: "FrozenLake-v1",
    entryPoint: createFrozenLake,
    options: { mapName: "4x4" },
    maxEpisodeSteps: 100,
    rewardThreshold: 0.7,
  },
  {
    id: "FrozenLake8x8-v1",
    entryPoint: createFrozenLake,
    options: { mapName: "8x8" },
    maxEpisodeSteps: 200,
    rewardThreshold: 0.85,
  },
  { id: "CliffWalking-v1", entryPoint: createCliffWalking },
  { id: "CliffWalkingSlippery-v1", entryPoint: createCliffWalking, options: { isSlippery: true } },
  { id: "Taxi-v4", entryPoint: (options) => new TaxiEnv(options), maxEpisodeSteps: 200, rewardThreshold: 8 },
  { id: "CartPole-v0", entryPoint: createCartPole, maxEpisodeSteps: 200, rewardThreshold: 195 },
  { id: "CartPole-v1", entryPoint: createCartPole, maxEpisodeSteps: 500, rewardThreshold: 475 },
  {
    id: "MountainCar-v0",
    entryPoint: (options) => new MountainCarEnv(options),
    maxEpisodeSteps: 200,
    rewardThreshold: -110,
  },
  {
    id: "MountainCarContinuous-v0",
    entryPoint: (options) => new ContinuousMountainCarEnv(options),
    maxEpisodeSteps: 999,
    rewardThreshold: 90,
  },
  { id: "Acrobot-v1", entryPoint: (options) => new AcrobotEnv(options), maxEpisodeSteps: 500, rewardThreshold: -100 },
  { id: "TextWorld-v0", entryPoint: (options) => new TextWorldEnv(options), maxEpisodeSteps: 50 },
  { id: "Pendulum-v1", entryPoint: (options) => new PendulumEnv(options), maxEpisodeSteps: 200 },
  { id: "Bandit-v0", entryPoint: (options) => new BanditEnv(options) },
  { id: "BullsAndCows-v0", entryPoint: (options) => new BullsAndCowsEnv(options) },
  { id: "Calculator-v0", entryPoint: (options) => new CalculatorEnv(options) },
  { id: "GuessNumber-v0", entryPoint: (options) => new GuessNumberEnv(options) },
  { id: "Sokoban-v0", entryPoint: (options) => new SokobanEnv(options), maxEpisodeSteps: 100 },
  { id: "TwentyFortyEight-v0", entryPoint: (options) => new TwentyFortyEightEnv(options), maxEpisodeSteps: 10_000 },
  { id: "WebShop-v0", entryPoint: (options) => new WebShopEnv(options) },
  { id: "Wordle-v0", entryPoint: (options) => new WordleEnv(options) },
];
