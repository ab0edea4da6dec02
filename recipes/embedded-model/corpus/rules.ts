import type { RandomStream } from "../../../src/tensor/random.js";
import type { Moment } from "./games/game.js";
import { drawStatement, type Statement } from "./statements.js";

/** What to answer, said beforehand: one action when a statement holds, another when not. */
export interface Rule {
  readonly text: string;
  readonly skill: string;
  readonly answer: (moment: Moment) => string;
}

/** More actions than this are numbers; a rule is about a few that have names. */
const MOST_REPLIES = 10;

/**
 * A rule for a game's actions; undefined for a moment that tells no numbers. Statement and actions are drawn independently,
 * so that over all rules no action goes with any observation.
 */
export function drawRule({ quantities = [], replies }: Moment, random: RandomStream): Rule | undefined {
  if (quantities.length === 0 || replies.length > MOST_REPLIES) return undefined;
  const statement = drawStatement(quantities, random);
  const [first, second] = random.sampleIndices(replies.length, 2).map((i) => replies[i]);
  return {
    text: ruleText(statement, first, second, random),
    skill: `rule: ${statement.skill}`,
    answer: (now) => (statement.holds(now.quantities ?? []) ? first : second),
  };
}

function ruleText(
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
