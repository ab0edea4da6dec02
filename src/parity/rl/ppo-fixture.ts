import type { PerTokenKl } from "../../algorithms/shared/kl.js";
import type { Rows } from "./rows.js";

export type Scalars = Readonly<Record<string, number | null>>;
export type Logits = readonly Rows[];

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
  readonly inputs: Readonly<Record<"mask" | "labels" | "values" | "vpreds", Rows>> &
    Readonly<Record<"old_logits" | "ref_logits" | "logits", Logits>> & { readonly scores: readonly number[] };
  readonly logprobs_from_logits: Readonly<Record<"old" | "ref" | "new", Rows>>;
  readonly entropy_from_logits: Rows;
  readonly compute_rewards: Readonly<Record<"rewards" | "non_score_rewards" | "kls", Rows>>;
  readonly compute_advantages: Readonly<Record<"values" | "advantages" | "returns", Rows>>;
  readonly loss: {
    readonly policy_loss: number;
    readonly value_loss_times_vf_coef: number;
    readonly stats: Scalars;
    readonly grad_logprobs: Rows;
    readonly grad_logits: Logits;
    readonly grad_vpreds: Rows;
  };
  readonly step_stats: Scalars;
}

export interface PpoFixture {
  readonly cases: readonly PpoCase[];
  readonly masked_statistics: readonly MaskedStatistics[];
  readonly adaptive_kl: readonly AdaptiveKlCase[];
}

export interface MaskedStatistics {
  readonly x: Rows;
  readonly mask: Rows;
  readonly masked_mean: number;
  readonly masked_var: number;
  readonly masked_var_biased: number;
  readonly masked_whiten: Rows;
  readonly masked_whiten_keep_mean: Rows;
}

export interface AdaptiveKlCase {
  readonly init_kl_coef: number;
  readonly target: number;
  readonly horizon: number;
  readonly n_steps: number;
  readonly current: readonly number[];
  readonly values: readonly number[];
}
