/** The KL coefficient of a run and how it changes. */
export interface KlController {
  /** The coefficient now. */
  readonly value: number;
  /** After an update on `samples` samples whose mean divergence from the reference was `current` nats. */
  update(current: number, samples: number): void;
  /** What a checkpoint keeps. */
  getState(): KlControllerState;
}

export interface KlControllerState {
  readonly value: number;
}

/** A coefficient that stays as it is. */
class FixedKlController implements KlController {
  constructor(readonly value: number) {}

  update(_current: number, _samples: number): void {}

  getState(): KlControllerState {
    return { value: this.value };
  }
}

export interface AdaptiveKlOptions {
  readonly initKlCoef: number;
  /** Divergence in nats a sample that is aimed at. */
  readonly target: number;
  /** Samples over which the coefficient adapts. */
  readonly horizon: number;
}

/** Raises the coefficient when the policy is further from the reference than the target, and lowers it else (Ziegler et al. 2019). */
export class AdaptiveKlController implements KlController {
  private readonly target: number;
  private readonly horizon: number;
  private coefficient: number;

  constructor({ initKlCoef, target, horizon }: AdaptiveKlOptions, state: KlControllerState = { value: initKlCoef }) {
    this.target = target;
    this.horizon = horizon;
    this.coefficient = state.value;
  }

  get value(): number {
    return this.coefficient;
  }

  update(current: number, samples: number): void {
    const proportionalError = Math.min(Math.max(current / this.target - 1, -0.2), 0.2);
    this.coefficient *= 1 + (proportionalError * samples) / this.horizon;
  }

  getState(): KlControllerState {
    return { value: this.coefficient };
  }
}

/** The controller that a PPO configuration asks for; `state` is a checkpoint's. */
export function createKlController(
  {
    adaptiveKl,
    initKlCoef,
    klTarget,
    klHorizon,
  }: { adaptiveKl: boolean; initKlCoef: number; klTarget: number; klHorizon: number },
  state?: KlControllerState,
): KlController {
  return adaptiveKl
    ? new AdaptiveKlController({ initKlCoef, target: klTarget, horizon: klHorizon }, state)
    : new FixedKlController(state?.value ?? initKlCoef);
}
