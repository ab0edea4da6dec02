import { boolean, defineSettings, number } from "../../../core/settings.js";
import { invalidArgument } from "../../../core/errors.js";
import type { Metrics } from "../learner.js";
import { sum } from "./arrays.js";
import type { NumberArray } from "./statistics.js";

const TRL = "TRL 1.16";

/** Settings of a coefficient of the entropy bonus that follows the entropy (Skywork-OR1). */
export const adaptiveEntropySettings = defineSettings({
  useAdaptiveEntropy: boolean({
    description:
      "Raise the weight of the entropy bonus after each optimizer step whose entropy is at most entropyTarget, lower it otherwise. It begins at entropyCoef.",
    source: TRL,
  }),
  entropyTarget: number({
    default: 0.2,
    min: 0,
    description: "Entropy, in nats per token, above which useAdaptiveEntropy has no bonus.",
    source: TRL,
  }),
  entropyCoefDelta: number({
    default: 0.005,
    min: 0,
    description: "Change of the weight under useAdaptiveEntropy.",
    source: TRL,
  }),
  entropyCoefMin: number({
    default: 0,
    min: 0,
    description: "Smallest weight under useAdaptiveEntropy.",
    source: TRL,
  }),
  entropyCoefMax: number({
    default: 1,
    min: 0,
    description: "Largest weight under useAdaptiveEntropy.",
    source: TRL,
  }),
});

interface AdaptiveEntropyConfig {
  readonly useAdaptiveEntropy: boolean;
  readonly entropyCoef: number;
  readonly entropyTarget: number;
  readonly entropyCoefDelta: number;
  readonly entropyCoefMin: number;
  readonly entropyCoefMax: number;
}

/** The weight of the entropy bonus after an optimizer step; JSON. */
export interface AdaptiveEntropyState {
  readonly entropyCoef: number;
  /** Mean entropy of the last step's tokens; null before the first step. */
  readonly entropy: number | null;
}

/** Returns the state before the first step; undefined without `useAdaptiveEntropy`. */
export function initialEntropyState(config: AdaptiveEntropyConfig): AdaptiveEntropyState | undefined {
  return config.useAdaptiveEntropy ? { entropyCoef: config.entropyCoef, entropy: null } : undefined;
}

/** Returns the weight of the entropy bonus at the next step. */
export function currentEntropyCoef(
  { entropyTarget }: Pick<AdaptiveEntropyConfig, "entropyTarget">,
  state: AdaptiveEntropyState,
): number {
  return state.entropy !== null && state.entropy <= entropyTarget ? state.entropyCoef : 0;
}

/** Returns the state after a step, from the entropies of its tokens and their masks by turn. */
export function updateEntropyState(
  { entropyCoef }: AdaptiveEntropyState,
  entropies: readonly NumberArray[],
  masks: readonly (NumberArray | undefined)[],
  config: AdaptiveEntropyConfig,
): AdaptiveEntropyState {
  const weights = entropies.map(({ length }, i) => masks[i] ?? new Float32Array(length).fill(1));
  const total = sum(entropies.map((turn, i) => sum(Array.from(turn, (entropy, t) => entropy * weights[i][t]))));
  const entropy = total / Math.max(1, sum(weights.map((weight) => sum(weight))));
  const { entropyTarget, entropyCoefDelta, entropyCoefMin, entropyCoefMax } = config;
  const next =
    entropy <= entropyTarget
      ? Math.min(entropyCoef + entropyCoefDelta, entropyCoefMax)
      : Math.max(entropyCoef - entropyCoefDelta, entropyCoefMin);
  return { entropyCoef: next, entropy };
}

/** Returns TRL's metric of the weight. */
export function entropyCoefMetrics(state: AdaptiveEntropyState | undefined): Metrics {
  return state === undefined ? {} : { entropy_coef: state.entropyCoef };
}

/** @throws INVALID_ARGUMENT for limits or a schedule that contradict `useAdaptiveEntropy`. */
export function checkAdaptiveEntropy(
  algorithm: string,
  {
    useAdaptiveEntropy,
    entropyCoefMin,
    entropyCoefMax,
    ...config
  }: AdaptiveEntropyConfig & {
    readonly entropySchedulerType: string;
  },
): void {
  if (!useAdaptiveEntropy) {
    for (const [name, { default: usual }] of Object.entries(adaptiveEntropySettings)) {
      const given = { entropyCoefMin, entropyCoefMax, ...config }[name as "entropyTarget"];
      if (name !== "useAdaptiveEntropy" && given !== usual)
        throw invalidArgument(
          `${algorithm}'s ${name} is read with useAdaptiveEntropy only. Set it, or remove ${name}.`,
        );
    }
    return;
  }
  if (entropyCoefMin > entropyCoefMax)
    throw invalidArgument(
      `${algorithm}'s entropyCoefMin is ${entropyCoefMin}, above entropyCoefMax ${entropyCoefMax}. Lower it.`,
    );
  if (config.entropySchedulerType !== "constant")
    throw invalidArgument(
      `${algorithm}'s useAdaptiveEntropy chooses the weight of the entropy bonus, so entropySchedulerType has no effect. Remove one of them.`,
    );
}
