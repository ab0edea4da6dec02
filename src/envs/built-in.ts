import { babyAiEnvs } from "./baby-ai/baby-ai.js";
import { acrobotEnvs } from "./classic-control/acrobot.js";
import { cartPoleEnvs } from "./classic-control/cart-pole.js";
import { continuousMountainCarEnvs } from "./classic-control/continuous-mountain-car.js";
import { mountainCarEnvs } from "./classic-control/mountain-car.js";
import { pendulumEnvs } from "./classic-control/pendulum.js";
import { gameEnvs } from "./games/games.js";
import { reasoningEnvs } from "./reasoning/reasoning.js";
import type { Registration } from "./registry/env-registry.js";
import { banditEnvs } from "./tasks/bandit.js";
import { bullsAndCowsEnvs } from "./tasks/bulls-and-cows.js";
import { calculatorEnvs } from "./tasks/calculator.js";
import { guessNumberEnvs } from "./tasks/guess-number.js";
import { shopSupportEnvs } from "./tasks/shop-support.js";
import { sokobanEnvs } from "./tasks/sokoban.js";
import { twentyFortyEightEnvs } from "./tasks/twenty-forty-eight.js";
import { webShopEnvs } from "./tasks/web-shop.js";
import { wordleEnvs } from "./tasks/wordle.js";
import { blackjackEnvs } from "./toy-text/blackjack.js";
import { cliffWalkingEnvs } from "./toy-text/cliff-walking.js";
import { frozenLakeEnvs } from "./toy-text/frozen-lake.js";
import { taxiEnvs } from "./toy-text/taxi.js";

/**
 * Registrations of the built-in environments. Step limits and reward thresholds are Gymnasium's.
 */
export const BUILT_IN_ENVS: readonly Registration[] = [
  ...blackjackEnvs,
  ...frozenLakeEnvs,
  ...cliffWalkingEnvs,
  ...taxiEnvs,
  ...cartPoleEnvs,
  ...mountainCarEnvs,
  ...continuousMountainCarEnvs,
  ...acrobotEnvs,
  ...pendulumEnvs,
  ...banditEnvs,
  ...bullsAndCowsEnvs,
  ...calculatorEnvs,
  ...guessNumberEnvs,
  ...shopSupportEnvs,
  ...sokobanEnvs,
  ...twentyFortyEightEnvs,
  ...webShopEnvs,
  ...wordleEnvs,
  ...babyAiEnvs,
  ...gameEnvs,
  ...reasoningEnvs,
];
