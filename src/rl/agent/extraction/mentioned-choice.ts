import { checkOptions, oneOf } from "../../../core/settings.js";
import { findLastNamed } from "../../../envs/index.js";
import { checkChoices } from "./choice-extractors.js";
import type { Extractor } from "./extractor.js";
import { removeNonDecisions } from "./negation-filter.js";

/** Options of `mentionedChoice`. */
export interface MentionedChoiceOptions {
  /**
   * "decision" (default): a mention after words that express a decision ("I will ...", "so ...",
   * "the best move is ..."), else one in the last or first sentence. "anywhere": the last mention.
   */
  readonly where?: "decision" | "anywhere";
}

/**
 * Finds the choice that English prose decides on: whole words, ignoring case, the last one if
 * several qualify. Negations, lists and idioms do not count (`removeNonDecisions`).
 */
export function mentionedChoice(choices: readonly string[], options: MentionedChoiceOptions = {}): Extractor<string> {
  checkOptions("mentionedChoice", options, { where: oneOf("decision", "anywhere") });
  const { where = "decision" } = options;
  checkChoices(choices);
  const lastMention = (text: string) => {
    const index = findLastNamed(text, choices);
    return index === undefined ? undefined : choices[index];
  };
  const stripNonDecisions = removeNonDecisions(choices);
  return (completion) => {
    const sentences = splitStatements(completion).map(stripNonDecisions);
    const value =
      where === "anywhere" ? sentences.map(lastMention).findLast(isDefined) : findDecision(sentences, lastMention);
    return value === undefined ? undefined : { kind: "mention", value };
  };
}

/** Words that introduce a decision, up to the next clause. */
const DECISION_CLAUSE = new RegExp(
  "\\b(?:i(?:['’]ll| will| would| should| must|['’]d| shall|['’]m going to| am going to| want to| have to| choose| pick| pull| take| play| " +
    "say| go| decide| move)?|let['’]?s|let me|we(?:['’]ll| will| should)|you should|" +
    "(?:answer|action|move|choice|decision|guess|command|option|play|thing to do|way)(?: here| now)? (?:is|will be|would be|should be)|" +
    "therefore|thus|hence|so)\\b(?:(?![,;]|\\b(?:because|since|as|but|while|although|when|if|unless|before|after|than)\\b).)*",
  "gi",
);

function findDecision(
  sentences: readonly string[],
  lastMention: (text: string) => string | undefined,
): string | undefined {
  const clauses = sentences.flatMap((sentence) => sentence.match(DECISION_CLAUSE) ?? []);
  return (
    clauses.map(lastMention).findLast(isDefined) ??
    lastMention(sentences.at(-1) ?? "") ??
    lastMention(sentences.at(0) ?? "")
  );
}

/** Sentences and lines of a text, without questions. */
function splitStatements(text: string): string[] {
  const sentences = text.split(/(?<=[.!?]["'”’*)\]]*)\s+|\n+/);
  return sentences.filter((sentence) => sentence.trim() !== "" && !/\?["'”’*)\]]*\s*$/.test(sentence));
}

function isDefined<Value>(value: Value | undefined): value is Value {
  return value !== undefined;
}
