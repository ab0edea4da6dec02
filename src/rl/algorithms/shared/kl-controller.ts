/** Settings of the KL coefficient. */
export interface KlControllerConfig {
  readonly adaptiveKl: boolean;
  /** Target KL per sample, in nats. */
  readonly klTarget: number;
  /** Samples over which the coefficient adapts. */
  readonly klHorizon: number;
}

/**
 * Returns the KL coefficient after an update on `samples` samples whose mean KL to the reference
 * was `kl` nats: raised when the KL is above the target, lowered when below, by 20 % per horizon at
 * most (Ziegler et al. 2019, sec. 2.2). A KL or coefficient that is not finite changes nothing.
 */
export function nextKlCoef(
  klCoef: number,
  kl: number,
  samples: number,
  { adaptiveKl, klTarget, klHorizon }: KlControllerConfig,
): number {
  if (!adaptiveKl) return klCoef;
  const proportionalError = Math.min(Math.max(kl / klTarget - 1, -0.2), 0.2);
  const next = klCoef * (1 + (proportionalError * samples) / klHorizon);
  return Number.isFinite(next) ? next : klCoef;
}
