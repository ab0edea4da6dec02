import { nextKlCoef } from "../../../src/rl/algorithms/shared/kl-controller.js";
import { mean, variance, whiten } from "../../../src/rl/algorithms/shared/statistics.js";
import { maxRelativeError, type ParityReport } from "../parity-report.js";
import type { AdaptiveKlCase, MaskedStatistics } from "./ppo-fixture.js";

const TOLERANCE = 2e-5;

/** Means, variances and whitening under a mask. */
export function compareMaskedStatistics(fixture: MaskedStatistics, name: string, report: ParityReport): void {
  const [x, mask] = [fixture.x.flat(), fixture.mask.flat()];
  const ours = [
    mean(x, mask),
    variance(x, mask),
    variance(x, mask, { unbiased: false }),
    ...whiten(x, { mask }),
    ...whiten(x, { mask, shiftMean: false }),
  ];
  const theirs = [
    fixture.masked_mean,
    fixture.masked_var,
    fixture.masked_var_biased,
    ...fixture.masked_whiten.flat(),
    ...fixture.masked_whiten_keep_mean.flat(),
  ];
  report.checkWithin(`rl/ppo ${name}`, maxRelativeError(ours, theirs), TOLERANCE);
}

/** The KL coefficient after each update. */
export function compareAdaptiveKl(fixture: AdaptiveKlCase, name: string, report: ParityReport): void {
  const { init_kl_coef: initKlCoef, target, horizon, n_steps: samples, current, values } = fixture;
  const config = { adaptiveKl: true, klTarget: target, klHorizon: horizon };
  const ours = [initKlCoef];
  for (const kl of current) ours.push(nextKlCoef(ours.at(-1)!, kl, samples, config));
  report.checkWithin(`rl/ppo ${name}`, maxRelativeError(ours, values), TOLERANCE);
}
