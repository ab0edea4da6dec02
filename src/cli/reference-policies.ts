import { blackjackReturn } from "../envs/experts/blackjack-solver.js";
import { knownReturns } from "../envs/index.js";
import { table } from "./output.js";

/** A policy whose mean return is known, or was measured with a standard error. */
export interface PolicyReturn {
  readonly policy: string;
  readonly meanReturn: number;
  readonly standardError?: number;
}

/** What is known of an environment as it is made with these options, from the worst to the best; nothing of most variants. */
export function referencePolicies(
  env: string,
  envOptions: Readonly<Record<string, unknown>> = {},
  maxSteps?: number,
): readonly PolicyReturn[] {
  if (env === "Blackjack-v1" && maxSteps === undefined) return blackjackPolicies(envOptions);
  const isAsRegistered = Object.keys(envOptions).length === 0 && maxSteps === undefined;
  if (!isAsRegistered || !Object.hasOwn(knownReturns, env)) return [];
  const { random, best } = knownReturns[env];
  return [
    { policy: "random actions", meanReturn: random },
    { policy: "best known", meanReturn: best },
  ];
}

function blackjackPolicies({ natural = false, sab = true }: Readonly<Record<string, unknown>>): PolicyReturn[] {
  const rules = { natural: natural === true, sab: sab === true };
  const stickAt = (least: number) => blackjackReturn(rules, (sum) => (sum >= least ? 0 : 1));
  return [
    { policy: "random actions", meanReturn: blackjackReturn(rules, "random") },
    { policy: "stick at 20 and above", meanReturn: stickAt(20) },
    { policy: "stick at 17 and above", meanReturn: stickAt(17) },
    { policy: "best policy", meanReturn: blackjackReturn(rules, "best") },
  ];
}

/** A table of policies with their mean returns, those without one left out. */
export function returnsTable(policies: readonly PolicyReturn[]): string {
  const rows = policies
    .filter(({ meanReturn }) => !Number.isNaN(meanReturn))
    .map(({ policy, meanReturn, standardError }) => [
      policy,
      rounded(meanReturn),
      standardError === undefined || Number.isNaN(standardError) ? "" : `± ${rounded(standardError)}`,
    ]);
  return table([["POLICY", "MEAN RETURN", ""], ...rows], [1]);
}

/** Four digits after the point for returns of about one, fewer for larger ones. */
function rounded(value: number): string {
  const size = Math.abs(value);
  return value.toFixed(size < 10 ? 4 : size < 1000 ? 2 : 0);
}
