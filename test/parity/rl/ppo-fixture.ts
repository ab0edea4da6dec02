import type { PerTokenKl } from "../../../src/rl/algorithms/shared/kl.js";
import type { PaddedRows } from "./rows.js";

export type Scalars = Readonly<Record<string, number | null>>;
export type Logits = readonly PaddedRows[];

/** A case of ppo.json, under the names of TRL 0.7.11's methods. */
export interface PpoCase {
  readonly name: string;
  readonly config: {
    readonly kl_penalty: PerTokenKl | "full";
    readonly gamma: number;
    readonly lam: number;
    readonly whiten_rewards: boolean;
    readonly cliprange: number;
    readonly cliprange_value: number;
    readonly vf_coef: number;
    readonly ratio_threshold: number;
  };
  readonly kl_coef: number;
  readonly inputs: Readonly<Record<"mask" | "labels" | "values" | "vpreds", PaddedRows>> &
    Readonly<Record<"old_logits" | "ref_logits" | "logits", Logits>> & { readonly scores: readonly number[] };
  readonly logprobs_from_logits: Readonly<Record<"old" | "ref" | "new", PaddedRows>>;
  readonly entropy_from_logits: PaddedRows;
  readonly compute_rewards: Readonly<Record<"rewards" | "non_score_rewards" | "kls", PaddedRows>>;
  readonly compute_advantages: Readonly<Record<"values" | "advantages" | "returns", PaddedRows>>;
  readonly loss: {
    readonly policy_loss: number;
    readonly value_loss_times_vf_coef: number;
    readonly stats: Scalars;
    readonly grad_logprobs: PaddedRows;
    readonly grad_logits: Logits;
    readonly grad_vpreds: PaddedRows;
  };
  readonly step_stats: Scalars;
}

export interface PpoFixture {
  readonly cases: readonly PpoCase[];
  readonly masked_statistics: readonly MaskedStatistics[];
  readonly adaptive_kl: readonly AdaptiveKlCase[];
}

export interface MaskedStatistics {
  readonly x: PaddedRows;
  readonly mask: PaddedRows;
  readonly masked_mean: number;
  readonly masked_var: number;
  readonly masked_var_biased: number;
  readonly masked_whiten: PaddedRows;
  readonly masked_whiten_keep_mean: PaddedRows;
}

export interface AdaptiveKlCase {
  readonly init_kl_coef: number;
  readonly target: number;
  readonly horizon: number;
  readonly n_steps: number;
  readonly current: readonly number[];
  readonly values: readonly number[];
}
