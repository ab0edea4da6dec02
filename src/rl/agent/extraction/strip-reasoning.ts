import { type ExtractionFailure, extractionFailure } from "../../rollout/extraction.js";

/** Tags of reasoning blocks. */
const REASONING_TAGS = "think|thinking|thought|thoughts|reasoning|reflection";

const CLOSED_BLOCK = new RegExp(`<(${REASONING_TAGS})>[\\s\\S]*?</\\1>`, "gi");
/** The opening tag may be part of the chat template. */
const CLOSING_TAG_ONLY = new RegExp(`^[\\s\\S]*</(?:${REASONING_TAGS})>`, "i");
const UNCLOSED_BLOCK = new RegExp(`<(?:${REASONING_TAGS})>[\\s\\S]*$`, "i");

/** Start of text that the model writes for the other speaker. */
const NEXT_SPEAKER =
  /(?:^|\n)\s*(?:\*\*)?(?:Observation|User|Human|Environment|<\|im_start\|>|<\|user\|>)(?:\*\*)?\s*(?::|(?<=>))/i;

/** Removes reasoning and text written for the other speaker. */
export function stripReasoning(completion: string): string | ExtractionFailure {
  if (completion.trim() === "") return extractionFailure("The completion is empty.");
  const answer = completion.replace(CLOSED_BLOCK, "").replace(CLOSING_TAG_ONLY, "").replace(UNCLOSED_BLOCK, "");
  if (answer.trim() === "") {
    const isUnclosed = UNCLOSED_BLOCK.test(completion.replace(CLOSED_BLOCK, ""));
    return extractionFailure(
      isUnclosed ? "The reasoning never ends, so there is no answer." : "There is no answer after the reasoning.",
    );
  }
  const end = answer.search(NEXT_SPEAKER);
  const ownText = end === -1 ? answer : answer.slice(0, end);
  return ownText.trim() === ""
    ? extractionFailure("The completion only contains text for the other speaker.")
    : ownText.trim();
}
