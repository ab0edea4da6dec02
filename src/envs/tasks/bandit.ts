import { invalidArgument } from "../../core/errors.js";
import { applyDefaults } from "../env-options.js";
import { Box, Discrete } from "../spaces/index.js";
import type { TextInterface } from "../text-interface.js";
import { createChoiceText } from "../text-parsing.js";
import { TaskEnv, type TaskStep } from "./task-env.js";
import type { Registration } from "../registry/env-registry.js";

/** From the best-sounding to the worst-sounding name. */
const NAMES = [
  "Golden Goose",
  "Lucky Clover",
  "Rich Uncle",
  "Steady Mill",
  "Old Bucket",
  "Rusty Anchor",
  "Broken Wheel",
  "Cursed Well",
];
const MIN_PAYOUT_PROBABILITY = 0.2;
const MAX_PAYOUT_PROBABILITY = 0.8;

/** Options of `BanditEnv`. */
export interface BanditOptions {
  /** 2 to 8. */
  readonly arms?: number;
  /** Pulls per episode. */
  readonly pulls?: number;
  /**
   * "misleading": the better an arm's name sounds, the less it pays. "honest": the more it pays.
   * "random": what an arm pays is drawn for each episode and must be explored.
   */
  readonly names?: "misleading" | "honest" | "random";
}

/** `chances`: probability that each arm pays a coin. */
type BanditState = {
  readonly chances: readonly number[];
  readonly pulls: readonly number[];
  readonly coins: readonly number[];
};

/**
 * Pull the arms of a slot machine whose names mislead (after the bandits of RAGEN, Wang et al.
 * 2025). Observation: pulls and coins so far, one row per arm. Actions: the arms. Reward: 1 per
 * coin.
 */
export class BanditEnv extends TaskEnv<Int32Array, number, BanditState> {
  override readonly observationSpace: Box<"int32">;
  override readonly actionSpace: Discrete;
  override readonly text: TextInterface<Int32Array, number>;
  private readonly arms: number;
  private readonly pulls: number;
  private readonly names: string;

  constructor(options: BanditOptions = {}) {
    super();
    const defaults: Required<BanditOptions> = { arms: 2, pulls: 10, names: "misleading" };
    const { arms, pulls, names } = applyDefaults("Bandit", options, defaults);
    const isValid = Number.isInteger(arms) && arms >= 2 && arms <= NAMES.length;
    if (!isValid || !Number.isInteger(pulls) || pulls < 1 || !["misleading", "honest", "random"].includes(names))
      throw invalidArgument(
        `Bandit takes 2 to ${NAMES.length} arms, at least 1 pull and names "misleading", "honest" or "random"; ` +
          `got arms ${arms}, pulls ${pulls}, names "${names}".`,
      );
    this.arms = arms;
    this.pulls = pulls;
    this.names = names;
    this.observationSpace = new Box(0, pulls, { shape: [arms, 2], dtype: "int32" });
    this.actionSpace = new Discrete(arms);
    this.text = createBanditText(selectArmNames(arms), pulls);
  }

  protected override start(): BanditState {
    const { arms, names, random } = this;
    const chances = Array.from(
      { length: arms },
      (_, i) => MIN_PAYOUT_PROBABILITY + ((MAX_PAYOUT_PROBABILITY - MIN_PAYOUT_PROBABILITY) * i) / (arms - 1),
    );
    if (names === "honest") chances.reverse();
    if (names === "random") random.shuffle(chances);
    const zeros = Array.from({ length: arms }, () => 0);
    return { chances: chances, pulls: zeros, coins: zeros };
  }

  protected override observe({ pulls, coins }: BanditState): Int32Array {
    return Int32Array.from(pulls.flatMap((count, arm) => [count, coins[arm]]));
  }

  protected override advance({ chances, pulls, coins }: BanditState, arm: number): TaskStep<BanditState> {
    const reward = this.random.random() < chances[arm] ? 1 : 0;
    const state = { chances, pulls: pulls.with(arm, pulls[arm] + 1), coins: coins.with(arm, coins[arm] + reward) };
    return { state, reward, terminated: state.pulls.reduce((sum, count) => sum + count, 0) >= this.pulls };
  }
}

/** Selects evenly spaced names from best-sounding to worst-sounding. */
function selectArmNames(arms: number): string[] {
  return Array.from({ length: arms }, (_, i) => NAMES[Math.round((i * (NAMES.length - 1)) / (arms - 1))]);
}

function createBanditText(names: readonly string[], pulls: number): TextInterface<Int32Array, number> {
  return createChoiceText({
    systemPrompt: `A slot machine has ${names.length} arms: ${names.join(", ")}. Each pays a coin or nothing. Win as many coins as you can in ${pulls} pulls. Answer with the name of an arm.`,
    formatObservation: (observation: Int32Array) => {
      const left = pulls - names.reduce((sum, _, arm) => sum + observation[2 * arm], 0);
      const record = names.map((name, arm) => {
        const [count, coins] = [observation[2 * arm], observation[2 * arm + 1]];
        return count === 0 ? `${name}: not pulled yet.` : `${name}: ${coins} coins in ${count} pulls.`;
      });
      return `${record.join(" ")} ${left} pulls left. Which arm do you pull?`;
    },
    names,
  });
}

export const banditEnvs: readonly Registration[] = [
  {
    id: "Bandit-v0",
    entryPoint: (options) => new BanditEnv(options),
    summary: "choose between arms with misleading names",
    knownReturns: { random: 5, best: 8, basis: "page" },
  },
];
