import type { RandomStream } from "../../../src/core/random/random-stream.js";
import type { ObservationSample } from "./games/game.js";
import { drawStatement, type Statement } from "./statements.js";

/** What to answer, said beforehand: one action when a statement holds, another when not. */
export interface Rule {
  readonly text: string;
  readonly skill: string;
  readonly answer: (moment: ObservationSample) => string;
}

/** More actions than this are numbers; a rule is about a few that have names. */
const MAX_COMPLETIONS = 10;

/**
 * A rule for a game's actions; undefined for a moment that tells no numbers. Statement and actions
 * are drawn independently, so that over all rules no action goes with any observation.
 */
export function drawRule(
  { quantities = [], validCompletions }: ObservationSample,
  random: RandomStream,
): Rule | undefined {
  if (quantities.length === 0 || validCompletions.length > MAX_COMPLETIONS) return undefined;
  const statement = drawStatement(quantities, random);
  const [first, second] = random.sampleIndices(validCompletions.length, 2).map((i) => validCompletions[i]);
  return {
    text: formatRule(statement, first, second, random),
    skill: `rule: ${statement.skill}`,
    answer: (sample) => (statement.holds(sample.quantities ?? []) ? first : second),
  };
}

function formatRule(
  { subject, complement, signs }: Statement,
  first: string,
  second: string,
  random: RandomStream,
): string {
  return random.choice([
    `If ${subject} is ${complement} answer ${first}, else ${second}.`,
    `Answer ${first} if ${subject} is ${complement}, otherwise ${second}.`,
    `${signs}: ${first}, else ${second}.`,
    `${signs}: ${first}, else ${second}.`,
  ]);
}
