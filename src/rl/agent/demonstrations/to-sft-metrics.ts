import type { Metrics } from "../../algorithms/learner.js";
import type { SftMetrics } from "../../algorithms/sft/sft-learner.js";

/** Converts the metrics of an SFT update to the names in a run's log. */
export function toSftMetrics(stats: SftMetrics): Metrics {
  return {
    "sft/loss": stats.loss,
    "sft/mean_token_accuracy": stats.mean_token_accuracy,
    "sft/grad_norm": stats.grad_norm,
    "sft/learning_rate": stats.learning_rate,
    "sft/num_tokens": stats.num_tokens,
  };
}
