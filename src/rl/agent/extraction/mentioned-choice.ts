import { findLastNamed } from "../../../envs/text-parsing.js";
import { checkChoices } from "./choice-extractors.js";
import type { Extractor } from "./extractor.js";
import { removeNonDecisions } from "./negation-filter.js";

export interface MentionedChoiceOptions {
  /**
   * "decision" (the default) takes a mention behind words that decide ("I will ...", "so ...", "the best move is ..."), else one
   * in the reply's last or first sentence; "anywhere" takes the last mention of all.
   */
  readonly where?: "decision" | "anywhere";
}

/**
 * The choice that prose speaks of, in whole words and in any case; where several are named, the last one counts. Asides are no
 * mentions: see asideRemover. It knows English only.
 */
export function mentionedChoice(
  choices: readonly string[],
  { where = "decision" }: MentionedChoiceOptions = {},
): Extractor<string> {
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

/** Words behind which a decision stands, up to where the next clause begins. */
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

/** The sentences of a text and its lines, without questions. */
function splitStatements(text: string): string[] {
  const sentences = text.split(/(?<=[.!?]["'”’*)\]]*)\s+|\n+/);
  return sentences.filter((sentence) => sentence.trim() !== "" && !/\?["'”’*)\]]*\s*$/.test(sentence));
}

function isDefined<Value>(value: Value | undefined): value is Value {
  return value !== undefined;
}
