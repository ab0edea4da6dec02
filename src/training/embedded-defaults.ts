import type { ReplyKind } from "../agent/text-agent.js";
import type { AlgorithmName } from "../algorithms/table.js";
import type { AlgorithmSettings } from "./algorithm-settings.js";

/** Episodes of an update: the model is small enough for many. */
const EPISODES = 64;

/**
 * Where a reply is none of a few, each of its tokens may be one of a thousand, whose entropy can be ten times that of two choices:
 * the bonus that keeps a choice open would pay for noise. In Blackjack with free replies the entropy rose to 4.5 nats with it, and
 * nothing was learnt.
 */
const OPEN_REPLIES = 10;

/**
 * What fits the embedded model better where episodes are compared: many of them, a higher learning rate, and something that keeps it
 * trying: an entropy bonus that falls. Its reference policy replies at random, so there is nothing to stay close to.
 */
export function embeddedGroupDefaults(
  { algorithm, replies }: { readonly algorithm: Exclude<AlgorithmName, "ppo">; readonly replies: ReplyKind },
  { numGenerations = 8 }: AlgorithmSettings,
): AlgorithmSettings {
  const shared = {
    numGenerations,
    batchSize: Math.ceil(EPISODES / numGenerations) * numGenerations,
    minTurns: 512,
    miniBatchSize: 256,
    numIterations: 4,
    learningRate: 1e-3,
    maxGradNorm: 0.5,
  };
  const isChoice = replies === "choices" || replies === "scored";
  const bonus = (entropyCoef: number) =>
    ({ entropyCoef: isChoice ? entropyCoef : entropyCoef / OPEN_REPLIES, entropySchedulerType: "linear" }) as const;
  return {
    grpo: { ...shared, ...bonus(0.1) },
    // Dividing by the group's deviation favours what is seldom tried; without it the bonus must do more.
    rloo: { ...shared, ...bonus(0.2), beta: 0 },
    reinforce: { ...shared, ...bonus(0.15), baseline: numGenerations > 1 ? "group" : "none", klCoef: 0 } as const,
  }[algorithm];
}
