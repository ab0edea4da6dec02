import { type ExtractionFailure, failure } from "../../rollout/extraction.js";

/** What reasoning stands in, in the tags that today's models use. */
const REASONING = "think|thinking|thought|thoughts|reasoning|reflection";

const CLOSED = new RegExp(`<(${REASONING})>[\\s\\S]*?</\\1>`, "gi");
/** A chat template may have written the opening tag. */
const END_ONLY = new RegExp(`^[\\s\\S]*</(?:${REASONING})>`, "i");
const NEVER_CLOSED = new RegExp(`<(?:${REASONING})>[\\s\\S]*$`, "i");

/** Where a model goes on with the other side of the conversation. */
const OTHER_SIDE =
  /(?:^|\n)\s*(?:\*\*)?(?:Observation|User|Human|Environment|<\|im_start\|>|<\|user\|>)(?:\*\*)?\s*(?::|(?<=>))/i;

/** The part of a reply that speaks for the model: without reasoning, and without the other side's words. */
export function readableReply(reply: string): string | ExtractionFailure {
  if (reply.trim() === "") return failure("The reply is empty.");
  const said = reply.replace(CLOSED, "").replace(END_ONLY, "").replace(NEVER_CLOSED, "");
  if (said.trim() === "") {
    const isOpen = NEVER_CLOSED.test(reply.replace(CLOSED, ""));
    return failure(
      isOpen ? "The reasoning never ends, so there is no answer." : "There is no answer behind the reasoning.",
    );
  }
  const end = said.search(OTHER_SIDE);
  const own = end === -1 ? said : said.slice(0, end);
  return own.trim() === "" ? failure("The reply only speaks for the other side.") : own.trim();
}
