import { lastNamed } from "../../envs/text-parsing.js";
import { checkChoices } from "./choice-list.js";
import type { Extractor } from "./extractor.js";
import { asideRemover } from "./asides.js";

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
  const named = (text: string) => {
    const index = lastNamed(text, choices);
    return index === undefined ? undefined : choices[index];
  };
  const withoutAsides = asideRemover(choices);
  return (reply) => {
    const sentences = statements(reply).map(withoutAsides);
    const value = where === "anywhere" ? sentences.map(named).findLast(isThere) : decided(sentences, named);
    return value === undefined ? undefined : { kind: "mention", value };
  };
}

/** Words behind which a decision stands, up to where the next clause begins. */
const DECIDING = new RegExp(
  "\\b(?:i(?:['’]ll| will| would| should| must|['’]d| shall|['’]m going to| am going to| want to| have to| choose| pick| pull| take| play| " +
    "say| go| decide| move)?|let['’]?s|let me|we(?:['’]ll| will| should)|you should|" +
    "(?:answer|action|move|choice|decision|guess|command|option|play|thing to do|way)(?: here| now)? (?:is|will be|would be|should be)|" +
    "therefore|thus|hence|so)\\b(?:(?![,;]|\\b(?:because|since|as|but|while|although|when|if|unless|before|after|than)\\b).)*",
  "gi",
);

function decided(sentences: readonly string[], named: (text: string) => string | undefined): string | undefined {
  const clauses = sentences.flatMap((sentence) => sentence.match(DECIDING) ?? []);
  return clauses.map(named).findLast(isThere) ?? named(sentences.at(-1) ?? "") ?? named(sentences.at(0) ?? "");
}

/** The sentences of a text and its lines, without questions. */
function statements(text: string): string[] {
  const sentences = text.split(/(?<=[.!?]["'”’*)\]]*)\s+|\n+/);
  return sentences.filter((sentence) => sentence.trim() !== "" && !/\?["'”’*)\]]*\s*$/.test(sentence));
}

function isThere<Value>(value: Value | undefined): value is Value {
  return value !== undefined;
}
