import { computeBlackjackReturn } from "../../envs/index.js";
import { listReferences } from "../runs/run-curve.js";
import type { RunEnv } from "../runs/run-env.js";
import { formatTable } from "./display/format-table.js";

/** The mean return of a policy: known, or measured with a standard error. */
export interface PolicyReturn {
  readonly policy: string;
  readonly meanReturn: number;
  readonly standardError?: number;
}

/**
 * Lists the known policies of an environment with these options, worst first; empty for most
 * variants.
 */
export function listReferencePolicies(env: RunEnv): readonly PolicyReturn[] {
  const hasOwnSettings = Object.keys(env.settings).length > 0;
  if (env.id === "Blackjack-v1" && !hasOwnSettings) return listBlackjackPolicies(env.options);
  return listReferences(env).map(({ name, y }) => ({ policy: name, meanReturn: y }));
}

function listBlackjackPolicies({ natural = false, sab = true }: Readonly<Record<string, unknown>>): PolicyReturn[] {
  const rules = { natural: natural === true, sab: sab === true };
  const stickReturn = (threshold: number) => computeBlackjackReturn(rules, (sum) => (sum >= threshold ? 0 : 1));
  return [
    { policy: "random actions", meanReturn: computeBlackjackReturn(rules, "random") },
    { policy: "stick at 20 and above", meanReturn: stickReturn(20) },
    { policy: "stick at 17 and above", meanReturn: stickReturn(17) },
    { policy: "best policy", meanReturn: computeBlackjackReturn(rules, "best") },
  ];
}

/**
 * Formats policies with their mean returns as a table; those without a mean return are left out.
 */
export function formatReturnsTable(policies: readonly PolicyReturn[]): string {
  const rows = policies
    .filter(({ meanReturn }) => !Number.isNaN(meanReturn))
    .map(({ policy, meanReturn, standardError }) => [
      policy,
      formatMeanReturn(meanReturn),
      standardError === undefined || Number.isNaN(standardError) ? "" : `± ${formatMeanReturn(standardError)}`,
    ]);
  return formatTable([["POLICY", "MEAN RETURN", ""], ...rows], [1]);
}

/** Formats a return with four decimals, fewer for large ones. */
function formatMeanReturn(value: number): string {
  const magnitude = Math.abs(value);
  return value.toFixed(magnitude < 10 ? 4 : magnitude < 1000 ? 2 : 0);
}
