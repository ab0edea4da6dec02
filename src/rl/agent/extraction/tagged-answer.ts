import { checkOptions } from "../../../core/settings.js";
import type { Extractor } from "./extractor.js";
import { escapeRegExp, stripPunctuation } from "./strip-punctuation.js";

/** Names of answer tags and labels: <action>...</action>, "Action: ...". */
const DEFAULT_NAMES: readonly string[] = ["action", "answer", "move", "choice", "command", "decision", "guess"];

/** Options of `taggedAnswer`. */
export interface TaggedAnswerOptions {
  /** Names of tags and labels, ignoring case. */
  readonly names?: readonly string[];
}

/**
 * Finds a marked answer: <action>...</action> (also unclosed), \boxed{...}, or a line such as
 * "Action: ...", "**Final answer:** ...", "The answer is: ..." (the next line if the label's line
 * is empty). Tags precede labels; the last of each kind counts.
 */
export function taggedAnswer(options: TaggedAnswerOptions = {}): Extractor<string> {
  checkOptions("taggedAnswer", options, { names: Array });
  const { names = DEFAULT_NAMES } = options;
  const name = names.map(escapeRegExp).join("|");
  const closed = new RegExp(`<(${name})>([\\s\\S]*?)</\\1>`, "gi");
  const open = new RegExp(`<(${name})>\\s*([^\\n<]*)`, "gi");
  const label = new RegExp(
    `(?:^|[\\n.!?;>#*_-])[ \\t>#*_-]*(?:(?:so|my|the|your|final|next|best|correct|chosen)[ \\t]+)*(?:${name})[ \\t*_]*` +
      "(?:(?:is|would be|will be)[ \\t]*)?[:=][ \\t*_]*([^\\n]*)(?:\\n[ \\t]*([^\\n]*))?",
    "gi",
  );
  return (completion) => {
    const tagged = [closed, open].map((tag) => [...completion.matchAll(tag)].map(([, , content]) => content));
    const boxed = [...completion.matchAll(/\\boxed\{(?:\\text\{)?([^{}]*)\}/g)].map(([, content]) => content);
    const labeled = [...completion.matchAll(label)].map(([, inline, below = ""]) =>
      stripPunctuation(inline) === "" ? below : inline,
    );
    const answer = [...tagged, boxed, labeled]
      .map((found) => found.map(stripPunctuation).findLast((text) => text !== ""))
      .find((text) => text !== undefined);
    return answer === undefined ? undefined : { kind: "tag", value: answer };
  };
}
