export { BanditEnv, type BanditOptions } from "./bandit.js";
export { BullsAndCowsEnv, type BullsAndCowsOptions } from "./bulls-and-cows.js";
export { CalculatorEnv, type CalculatorOptions } from "./calculator.js";
export { GuessNumberEnv, type GuessNumberOptions } from "./guess-number.js";
export {
  type Order,
  type OrderStatus,
  type ShopCall,
  ShopSupportEnv,
  type ShopSupportOptions,
  type ShopTool,
} from "./shop-support.js";
export { SokobanEnv, type SokobanOptions } from "./sokoban.js";
export { TaskEnv, type TaskStep } from "./task-env.js";
export { TwentyFortyEightEnv } from "./twenty-forty-eight.js";
export { WebShopEnv, type WebShopOptions } from "./web-shop.js";
export { WordleEnv, type WordleOptions } from "./wordle.js";
