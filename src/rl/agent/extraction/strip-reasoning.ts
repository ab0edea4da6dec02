import { type ExtractionFailure, extractionFailure } from "../../rollout/extraction.js";

/** What reasoning stands in, in the tags that today's models use. */
const REASONING_TAGS = "think|thinking|thought|thoughts|reasoning|reflection";

const CLOSED_BLOCK = new RegExp(`<(${REASONING_TAGS})>[\\s\\S]*?</\\1>`, "gi");
/** A chat template may have written the opening tag. */
const CLOSING_TAG_ONLY = new RegExp(`^[\\s\\S]*</(?:${REASONING_TAGS})>`, "i");
const UNCLOSED_BLOCK = new RegExp(`<(?:${REASONING_TAGS})>[\\s\\S]*$`, "i");

/** Where a model goes on with the other side of the conversation. */
const NEXT_SPEAKER =
  /(?:^|\n)\s*(?:\*\*)?(?:Observation|User|Human|Environment|<\|im_start\|>|<\|user\|>)(?:\*\*)?\s*(?::|(?<=>))/i;

/** The part of a reply that speaks for the model: without reasoning, and without the other side's words. */
export function stripReasoning(completion: string): string | ExtractionFailure {
  if (completion.trim() === "") return extractionFailure("The reply is empty.");
  const answer = completion.replace(CLOSED_BLOCK, "").replace(CLOSING_TAG_ONLY, "").replace(UNCLOSED_BLOCK, "");
  if (answer.trim() === "") {
    const isUnclosed = UNCLOSED_BLOCK.test(completion.replace(CLOSED_BLOCK, ""));
    return extractionFailure(
      isUnclosed ? "The reasoning never ends, so there is no answer." : "There is no answer behind the reasoning.",
    );
  }
  const end = answer.search(NEXT_SPEAKER);
  const ownText = end === -1 ? answer : answer.slice(0, end);
  return ownText.trim() === "" ? extractionFailure("The reply only speaks for the other side.") : ownText.trim();
}
