import { defineAlgorithm } from "../define-algorithm.js";
import { concatenate, splitByLength } from "../shared/arrays.js";
import { groupRollout } from "../shared/group-rollout.js";
import type { NumberArray } from "../shared/statistics.js";
import {
  currentEntropyCoef,
  entropyCoefMetrics,
  initialEntropyState,
  updateEntropyState,
  type AdaptiveEntropyState,
} from "../shared/adaptive-entropy.js";
import { highEntropyMask } from "../shared/entropy-mask.js";
import { grpoAdvantages } from "./advantages.js";
import { grpoInputs } from "./loss-inputs.js";
import { entropyBonusFactor, grpoLoss } from "./loss.js";
import { grpoMetrics } from "./metrics.js";
import { grpoSettings, resolveGrpoConfig } from "./settings.js";

/**
 * Group relative policy optimization (Shao et al. 2024) and its successors, on the turns of
 * complete episodes.
 */
export const grpo = defineAlgorithm({
  name: "grpo",
  title: "GRPO",
  settings: grpoSettings,
  resolve: resolveGrpoConfig,
  klSetting: "beta",
  scoresEntropy: ({ topEntropyQuantile }) => topEntropyQuantile < 1,
  entropy: (config) => (entropyBonusFactor(config) > 0 ? "gradient" : "value"),
  hasRegularizer: (config) => entropyBonusFactor(config) > 0 || config.beta > 0,
  rollout: (config) =>
    groupRollout(config, {
      groupSize: config.grouping === "batch" ? 1 : config.numGenerations,
      isGroupRelative: config.grouping === "start" && (config.baseline === "step" || config.baseline === "group"),
    }),
  advantages: (trajectories, config) => ({ advantages: grpoAdvantages(trajectories, config) }),
  policyMasks: (turns, { topEntropyQuantile }) =>
    topEntropyQuantile < 1 ? entropyMaskPerTurn(turns, topEntropyQuantile) : undefined,
  loss: grpoLoss,
  inputs: (turns, totals, config) => grpoInputs(turns, config, totals),
  metrics: ({ perToken, steppedTurns }, _, config) =>
    grpoMetrics({ ratio: perToken.ratio!, ...perToken }, steppedTurns, config),
  state: {
    initial: initialEntropyState,
    afterStep: (state: AdaptiveEntropyState | undefined, { turns, perTurn }, config) =>
      state &&
      updateEntropyState(
        state,
        perTurn.entropy ?? [],
        turns.map(({ policyMask }) => policyMask),
        config,
      ),
    metrics: entropyCoefMetrics,
  },
  entropyScale: (config, state) => (state === undefined ? 1 : currentEntropyCoef(config, state)),
});

function entropyMaskPerTurn(
  turns: readonly { readonly entropies: NumberArray | undefined }[],
  fraction: number,
): NumberArray[] {
  const entropies = turns.map((turn) => turn.entropies!);
  return splitByLength(
    highEntropyMask(concatenate(entropies), fraction),
    entropies.map(({ length }) => length),
  );
}
